// The items page: an item in full, what was said of it, and another label for it.

import { get, post, uuid } from "./api.js";
import { Classes } from "./classes.js";
import { askName, knownName } from "./person.js";
import { markTiny } from "./tiny.js";
import { look, pairs } from "./view.js";

const at = (id) => document.getElementById(id);
const dialog = at("item-dialog");
const rights = document.body.dataset.rights.split(" ");
const asked = new URLSearchParams(location.search);
const classes = new Classes((label) => change(label));
let shown = null;
let queue = asked.has("queue");

wire();
mark();
if (asked.get("open")) open(asked.get("open"));
else if (queue && ids().length) open(ids()[0]);

function ids() {
  return [...document.querySelectorAll("#list .tile")].map((tile) => tile.dataset.id);
}

/** Show an item whole, with its answers and how they came about. */
async function open(id) {
  try {
    shown = await get("/api/item", { id });
  } catch (error) {
    warn(error.message);
    return;
  }
  const { item, history, details } = shown;
  at("item-title").textContent = item.id;
  const place = ids().indexOf(id);
  at("item-place").textContent = place < 0 ? "" : `${place + 1} of ${ids().length} on this page`;
  at("item-look").replaceChildren(look(item));
  at("item-look").scrollTo(0, 0);
  at("item-said").textContent = words(item);
  at("item-columns").replaceChildren(...pairs(details));
  at("item-details").hidden = !Object.keys(details).length;
  at("item-events").replaceChildren(...history.map(event));
  at("item-history").hidden = !history.length;
  classes.draw({ answer: { label: disputed(item) ? null : item.label } });
  warn("");
  if (!dialog.open) dialog.showModal();
  at("item-look").focus(); // Space scrolls the text; on a button it would close, or label
}

/** People disagree, and nobody has decided: no class is marked, which would sway the decision. */
function disputed({ votes }) {
  const labels = new Set(votes.map((vote) => vote.label).filter((label) => label !== null));
  return labels.size > 1 && !votes.some((vote) => vote.decides);
}

function words(item) {
  const given = item.votes.map((vote) => `${vote.annotator}${vote.decides ? " decided" : ""}: ${vote.label ?? "skipped"}`);
  const guess = item.guess ? `model: ${item.guess.label}` : "";
  return [...given, guess].filter(Boolean).join(" · ") || "Nobody has answered yet.";
}

function event(answer) {
  const line = document.createElement("li");
  const what = { label: answer.label, skip: "skipped", undo: "took an answer back" }[answer.action];
  const how = answer.decides ? " (decided)" : "";
  line.textContent = `${new Date(answer.answered_at).toLocaleString()} · ${answer.annotator}: ${what}${how}`;
  return line;
}

/** Give the shown item another label, or none; what was said before stays in its history. */
async function change(label) {
  if (!shown || !rights.includes("answer")) return;
  const { item } = shown;
  const annotator = knownName() || (await askName());
  const others = item.votes.some((vote) => vote.annotator !== annotator || vote.decides);
  const body = { submission: uuid(), annotator };
  try {
    if (item.round === null && label !== null) {
      await post("/api/bulk", { ...body, items: [item.id], label });
    } else {
      const given = label === null ? { skip: true } : { label };
      await post(others ? "/api/decisions" : "/api/labels", { ...body, item: item.id, ...given });
    }
  } catch (error) {
    warn(error.message);
    return;
  }
  const next = queue ? after(item.id) : null;
  await refresh();
  if (queue && !next) dialog.close();
  else await open(next ?? item.id);
}

function after(id) {
  const known = ids();
  return known[known.indexOf(id) + 1] ?? known.find((each) => each !== id) ?? null;
}

function step(by) {
  const known = ids();
  const to = known[known.indexOf(shown?.item.id) + by];
  if (to) open(to);
}

/** Draw the list again as it is now. */
async function refresh() {
  const response = await fetch(location.href);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  at("list").replaceChildren(...page.getElementById("list").childNodes);
  mark();
}

function mark() {
  document.querySelectorAll(".tile img").forEach(markTiny);
}

function warn(text) {
  at("item-alert").textContent = text;
  at("item-alert").hidden = !text;
}

function pressed(event) {
  if (!dialog.open || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.target.closest("input, select, textarea")) return;
  const key = event.key.toLowerCase();
  if (/^[0-9]$/.test(key)) classes.press(key);
  else if (key === "arrowleft") step(-1);
  else if (key === "arrowright") step(1);
  else if (key === "s") change(null);
  else if (key === "/") classes.find();
  else return;
  event.preventDefault();
}

function wire() {
  document.addEventListener("keydown", pressed);
  at("list").addEventListener("click", (event) => {
    if (event.target.closest("#queue")) {
      queue = true;
      open(ids()[0]);
      return;
    }
    const tile = event.target.closest(".tile");
    if (tile) open(tile.dataset.id);
  });
  at("filters").addEventListener("change", (event) => {
    if (event.target.tagName === "SELECT") at("filters").requestSubmit();
  });
  at("item-close").addEventListener("click", () => dialog.close());
  at("item-before").addEventListener("click", () => step(-1));
  at("item-after").addEventListener("click", () => step(1));
  at("item-skip")?.addEventListener("click", () => change(null));
  dialog.addEventListener("close", () => {
    const id = shown?.item.id;
    shown = null;
    document.querySelector(`.tile[data-id="${CSS.escape(id ?? "")}"] .link`)?.focus();
  });
}
