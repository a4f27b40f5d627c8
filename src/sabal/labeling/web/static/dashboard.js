// Keeps the dashboard up to date: the page is fetched again when the project has moved on.

import { get } from "./api.js";
import { markTiny } from "./tiny.js";

const PAUSE = 3000;
let seen = null;

markImages();
look();

async function look() {
  if (!document.hidden) {
    try {
      const { round, labeled, skipped, remaining, partly, training, metrics } = await get("/api/status");
      const now = JSON.stringify([round, labeled, skipped, remaining, partly, training, metrics]);
      if (seen !== null && seen !== now) await refresh();
      seen = now;
    } catch {
      // The server is away for a moment; what is shown stays.
    }
  }
  setTimeout(look, PAUSE);
}

async function refresh() {
  const response = await fetch("/dashboard");
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const open = [...document.querySelectorAll("details[open]")].map((each) => each.id);
  document.getElementById("main").replaceChildren(...page.getElementById("main").childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  markImages();
}

function markImages() {
  document.querySelectorAll(".tile img").forEach(markTiny);
}
