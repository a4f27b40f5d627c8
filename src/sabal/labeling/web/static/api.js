// Talking to the server: JSON both ways, and errors that say what to do.

import { answered, lost } from "./connection.js";

/** The server said no. `final` means that sending the same again cannot help. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem ? `Expected ${problem.expected}; got ${problem.got}; ${problem.fix}` : `Error ${status}`);
    this.status = status;
    this.got = problem?.got ?? "";
    // Without a reason it is a web server in front of the app that says so.
    this.byApp = Boolean(problem);
    this.final = this.byApp && status >= 400 && status < 500 && ![401, 408, 425, 429].includes(status);
  }
}

export async function get(path, values = {}) {
  return call(`${path}?${new URLSearchParams(values)}`, {});
}

export async function post(path, body) {
  return call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function call(address, options) {
  const response = await fetch(address, options).catch((error) => {
    lost();
    throw error;
  });
  const content = await response.json().catch(() => null);
  const refused = response.ok ? null : new Refused(response.status, content?.error);
  // Asking for items leases them: that is stored, as an answer is.
  answered(refused, Boolean(options.method) || address.startsWith("/api/next"));
  if (refused) throw refused;
  return content;
}

/** A random id; crypto.randomUUID is missing on pages that are served without encryption. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
