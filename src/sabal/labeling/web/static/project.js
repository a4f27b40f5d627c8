// The page of the lead: classes, guidelines and people.

import { post } from "./api.js";

const at = (id) => document.getElementById(id);
let task = null;
let enters = "";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-action]");
  if (!button) return;
  const { action } = button.dataset;
  const row = button.closest("li");
  if (row.dataset.class !== undefined) ask(action, row.dataset.class);
  else if (action === "renew") person({ action, name: row.dataset.person });
  else if (confirm(`Remove ${row.dataset.person}? Their link stops working; their answers stay.`)) {
    person({ action, name: row.dataset.person });
  }
});
document.addEventListener("submit", (event) => {
  const sends = {
    "add-class": () => change({ action: "add", name: at("new-class").value.trim() }),
    "add-person": () => person({ action: "add", name: at("new-person").value.trim(), role: at("new-role").value }),
    guidelines: () => guide(at("guideline").value, null),
  }[event.target.id];
  if (!sends) return;
  event.preventDefault();
  sends();
});
at("class-dialog").addEventListener("close", answered);
at("copy").addEventListener("click", copy);
at("link-dialog").addEventListener("close", () => {
  // Who has just become the first lead, or has a new link, goes on with it.
  if (enters) location.href = enters;
  else refresh();
});

/** Ask for the new name of a class, the class it belongs to, or its guideline. */
function ask(action, name) {
  task = { action, name };
  const titles = { rename: `Rename ${name}`, merge: `Merge ${name} into another class`, guide: `Guideline of ${name}` };
  at("class-title").textContent = titles[action];
  at("class-words").textContent = action === "merge" ? `All labels ${name} will count as labels of the other class. ${name} is no longer offered.` : "";
  for (const part of ["rename", "merge", "guide"]) at(`${part}-part`).hidden = part !== action;
  at("class-name").value = name;
  at("class-name").required = action === "rename";
  for (const option of at("class-target").options) option.hidden = option.disabled = option.value === name;
  at("class-target").value = [...at("class-target").options].find((option) => !option.disabled)?.value ?? "";
  at("class-guide").value = [...at("class-guidelines").children]
    .find((each) => each.dataset.class === name)?.textContent ?? "";
  at("class-go").textContent = { rename: "Rename", merge: "Merge", guide: "Save" }[action];
  at("class-dialog").returnValue = "";
  at("class-dialog").showModal();
}

function answered() {
  if (at("class-dialog").returnValue !== "go") return;
  const { action, name } = task;
  if (action === "guide") guide(at("class-guide").value, name);
  else change({ action, name, target: action === "rename" ? at("class-name").value.trim() : at("class-target").value });
}

async function change(body) {
  await send("/api/classes", body, "The classes are changed. Open pages follow by themselves.");
}

async function guide(text, className) {
  const about = className === null ? {} : { class_name: className };
  await send("/api/guidelines", { text, ...about }, "The guideline is saved.");
}

/** Send a change and draw the page again; gives what the server said, or null if it refused. */
async function send(path, body, news) {
  tell("alert", "");
  tell("news", "");
  try {
    const answer = await post(path, body);
    await refresh();
    tell("news", news);
    return answer;
  } catch (error) {
    tell("alert", error.message);
    return null;
  }
}

async function person(body) {
  tell("alert", "");
  let token = null;
  try {
    ({ token } = await post("/api/people", body));
  } catch (error) {
    tell("alert", error.message);
    return;
  }
  if (!token) {
    await refresh();
    return;
  }
  const link = `${location.origin}/login?token=${encodeURIComponent(token)}`;
  const own = document.body.dataset.person;
  enters = own === undefined || own === body.name ? link : "";
  at("link-title").textContent = `The link of ${body.name}`;
  at("link").value = link;
  at("link-dialog").showModal();
  at("link").select();
}

async function copy() {
  at("link").select();
  try {
    await navigator.clipboard.writeText(at("link").value);
    at("copy").textContent = "Copied";
  } catch {
    // Without encryption browsers do not let pages copy; the text is selected.
  }
}

/** Draw what may have changed; a guideline that is being written stays. */
async function refresh() {
  const response = await fetch("/project");
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of ["classes-panel", "people-panel", "class-target", "class-guidelines"]) {
    at(id).replaceChildren(...page.getElementById(id).childNodes);
  }
}

function tell(id, words) {
  at(id).textContent = words;
  at(id).hidden = !words;
}
