// Talking to the server: JSON both ways, and errors that say what to do.

/** The server said no. `final` means that sending the same again cannot help. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem ? `Expected ${problem.expected}; got ${problem.got}; ${problem.fix}` : `Error ${status}`);
    this.status = status;
    this.final = status >= 400 && status < 500 && ![401, 408, 425, 429].includes(status);
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
  const response = await fetch(address, options);
  const content = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, content?.error);
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
