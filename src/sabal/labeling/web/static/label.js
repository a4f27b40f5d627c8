// The labelling page: keys and clicks become answers, answers go out, items come in.

import { get, uuid } from "./api.js";
import { Bulk } from "./bulk.js";
import { Classes } from "./classes.js";
import { currentTrouble, onTrouble } from "./connection.js";
import { Deck } from "./deck.js";
import { Outbox } from "./outbox.js";
import { askName, knownName } from "./person.js";
import { Progress } from "./progress.js";
import { Reader } from "./reading.js";
import { Grid, drawOne, pairs, prepare, said } from "./view.js";
import { NOTHING, UNKNOWN, drawReason, keptWords, reason } from "./waiting.js";

const AHEAD = { one: 5, grid: 20 };
const LOW = { one: 3, grid: 8 };
const USUAL_PAUSE = 1000;
const WAITING_PAUSE = 300;
const BLANK = 450;
const MOST = 100;
const RECALLED = 20;
const NEWS = "sabal:news";

const at = (id) => document.getElementById(id);
const deck = new Deck();
const outbox = new Outbox(document.body.dataset.mark, drawSaved);
const classes = new Classes((label) => answer({ label }));
const grid = new Grid(at("grid"), (id) => {
  deck.select(id);
  draw();
});
const bulk = new Bulk(labelSimilar);
const reader = new Reader(at("one"), at("more"));
const progress = new Progress(statusCame, () => outbox.size);
let annotator = knownName();
let view = localStorage.getItem("sabal:view") === "grid" ? "grid" : "one";
let shownAt = performance.now();
let shownCard;
let lastCard = null;
let filling = false;
let ready = false;
let waitsFor = NOTHING;
let blank = null;
let oldest = null;
let recalling = false;
let detailsWanted = false;

start();

async function start() {
  wire();
  warn(sessionStorage.getItem(NEWS) ?? "");
  sessionStorage.removeItem(NEWS);
  drawSaved();
  draw();
  if (!annotator) annotator = await askName();
  if (at("person").tagName === "BUTTON") at("person").textContent = annotator;
  progress.again(0);
  // What an earlier visit left behind comes first, or its items would be offered again.
  await outbox.flush();
  ready = true;
  await fill();
  setInterval(renew, (1000 * Number(at("main").dataset.lease)) / 3);
}

/** Fetch items ahead of time, so that the next one is here when it is wanted. */
async function fill() {
  if (!ready || deck.ahead >= LOW[view]) return;
  await lease(deck.open - deck.ahead + AHEAD[view] + outbox.size);
}

/** Keep what is open ours for longer. */
function renew() {
  if (deck.open && !document.hidden) lease(deck.open + outbox.size);
}

/** Returns how many items the server has for us; null if it did not say. */
async function lease(count) {
  if (filling) return null;
  filling = true;
  let offered = null;
  try {
    const { items } = await get("/api/next", { annotator, count: Math.min(count, MOST) });
    offered = items.length;
    if (deck.add(items)) draw();
    deck.cards.slice(deck.position).forEach(prepare);
  } catch (error) {
    if (error.final) warn(error.message);
  }
  filling = false;
  return offered;
}

/** Answer the shown item; the next one is drawn before anything is sent. */
function answer(given) {
  const before = deck.card;
  if (!before || !annotator) return;
  const again = Boolean(before.answer);
  const seconds = Math.round(performance.now() - shownAt) / 1000;
  const card = deck.answer(given);
  draw();
  if (!again && card.round === progress.status?.round) progress.count(1);
  lastCard = card;
  at("last").textContent = `Last: ${said(card)}`;
  at("live").textContent = said(card);
  warn("");
  send("/api/labels", { item: card.id, ...given, seconds })
    .then(({ replaces, guess }) => {
      drawGuess(card, guess);
      if (!again) drawReplaced(card, replaces);
    })
    .catch((error) => {
      deck.refuse(card.id);
      warn(error.message);
      draw();
    });
  fill();
}

function undo() {
  if (!annotator) return;
  const card = deck.undo();
  if (card) {
    draw();
    if (card.round === progress.status?.round) progress.count(-1);
  }
  at("last").textContent = "";
  send("/api/undo", {})
    .then((sent) => undone(sent.answer, card))
    .catch((error) => warn(error.message));
}

/** The server says what it undid: usually what is shown already, else an answer of before. */
async function undone(stored, card) {
  at("live").textContent = stored ? "Undone: answer it again" : "Nothing to undo";
  if (!stored) at("last").textContent = "Nothing to undo";
  if (!stored || stored.item === card?.id) return;
  if (!deck.reopen(stored.item)) {
    await lease(deck.open + AHEAD[view]);
    deck.reopen(stored.item);
  }
  draw();
}

function send(path, body) {
  return outbox.add(path, { submission: uuid(), annotator, ...body });
}

/**
 * Decides when to ask for the status again. What the page waits for is said only where the status
 * knows of all answers (`settled`), and the server has no item for us.
 */
async function statusCame(status, before, settled) {
  if (settled && status && !classes.are(status.classes)) reloadForClasses();
  if (deck.card || !ready) {
    if (status?.round !== before?.round) fill();
    return progress.busy ? WAITING_PAUSE : USUAL_PAUSE;
  }
  const asks = status?.remaining > 0 || currentTrouble();
  const offered = asks ? await lease(AHEAD[view] + outbox.size) : 0;
  const sure = settled && offered === 0;
  if (!deck.card && sure) waitsFor = reason(status);
  drawWaiting();
  return sure && asks ? USUAL_PAUSE : WAITING_PAUSE;
}

/** The classes were changed: their buttons and keys are others now. Nothing is lost by it. */
function reloadForClasses() {
  if (document.querySelector("dialog[open]")) return;
  sessionStorage.setItem(NEWS, "The classes were changed: look at their names and keys.");
  location.reload();
}

function drawWaiting() {
  const trouble = currentTrouble();
  at("trouble").hidden = !trouble || !deck.card;
  if (!trouble) {
    if (!deck.card) drawReason(waitsFor);
    return;
  }
  const { title, text } = trouble;
  at("trouble-title").textContent = `${title}.`;
  at("trouble-text").textContent = `${text} ${keptWords(outbox.size, true)}`;
  if (!deck.card) drawReason({ title, text: `${text} ${keptWords(outbox.size, false)}`, share: undefined });
}

/** The last item is answered, or none has come yet. */
function ranOut() {
  waitsFor = NOTHING;
  clearTimeout(blank);
  blank = setTimeout(() => {
    if (waitsFor === NOTHING) waitsFor = UNKNOWN;
    drawWaiting();
  }, BLANK);
  progress.again(0);
}

function draw() {
  const { card } = deck;
  const alone = view === "one" || !card;
  at("stage").dataset.view = view;
  at("one").hidden = !card || !alone;
  at("grid").hidden = alone;
  at("message").hidden = Boolean(card);
  at("skip").setAttribute("aria-disabled", String(!card));
  at("view").querySelector("span").textContent = view === "one" ? "Grid" : "One";
  classes.draw(card);
  if (card && view === "one") drawOne(at("one"), card);
  else if (card) grid.draw(deck.page(), card);
  if (card !== shownCard) {
    shownCard = card;
    shownAt = performance.now();
    at("stage").dataset.item = card?.id ?? "";
    if (!card) ranOut();
    reader.begin();
  }
  drawDetails();
  drawWaiting();
}

function drawGuess(card, guess) {
  if (!guess || !card.answer || card !== lastCard) return;
  const sure = guess.probability === null ? "" : ` (${Math.round(100 * guess.probability)} %)`;
  const verdict = guess.label === card.answer.label ? "the model agrees" : `the model guessed ${guess.label}`;
  at("last").textContent = `Last: ${said(card)} · ${verdict}${sure}`;
}

/** This page did not know of an answer before: it was given in another tab, under the same name. */
function drawReplaced(card, before) {
  if (!before || card !== lastCard) return;
  const words = before.label ?? "skipped";
  const same = card.answer && said(card) === words;
  at("last").textContent = same
    ? `Last: ${words} · as you had said in another tab`
    : `Last: ${said(card)} · instead of ${words}, which you had said in another tab`;
}

function drawSaved() {
  const { size, stuck } = outbox;
  drawWaiting();
  at("saved").textContent = stuck ? `${size} kept here until the server answers` : size ? "Saving…" : "All saved";
  at("saved").dataset.state = stuck ? "stuck" : size ? "sending" : "saved";
}

function warn(words) {
  at("alert").textContent = words;
  at("alert").hidden = !words;
}

function switchView() {
  view = view === "one" ? "grid" : "one";
  localStorage.setItem("sabal:view", view);
  draw();
  fill();
}

async function move(step) {
  if (step < 0 && deck.position === 0) await recall();
  deck.move(step);
  draw();
  fill();
}

/** Fetch answers of earlier visits, so that going back does not end where this visit began. */
async function recall() {
  if (recalling || !ready || outbox.size || oldest === 0) return;
  recalling = true;
  let fresh = 0;
  try {
    while (!fresh && oldest !== 0) {
      const asked = { annotator, count: RECALLED, ...(oldest === null ? {} : { before: oldest }) };
      const { items } = await get("/api/answers", asked);
      // 0: there are no earlier ones.
      oldest = items.length ? Math.min(...items.map((item) => item.answer)) : 0;
      fresh = deck.add(items.map((item) => ({ ...item, answer: given(item) })));
    }
  } catch (error) {
    if (error.final) warn(error.message);
  }
  recalling = false;
}

function given({ label }) {
  return label === null ? { skip: true } : { label };
}

/** Show the other columns of the item, or hide them again. */
async function toggleDetails() {
  const { card } = deck;
  if (!card || !at("details")) return;
  detailsWanted = !detailsWanted;
  drawDetails();
}

async function drawDetails() {
  const { card } = deck;
  const place = at("details");
  if (!place) return;
  place.hidden = !detailsWanted || !card || view !== "one";
  at("info").setAttribute("aria-pressed", String(detailsWanted));
  if (place.hidden || place.dataset.item === card.id) return;
  place.dataset.item = card.id;
  try {
    card.details ??= (await get("/api/details", { id: card.id })).details;
  } catch {
    place.dataset.item = "";
    return;
  }
  if (deck.card === card) place.replaceChildren(...pairs(card.details));
}

/** Show the guidelines as they are now: the help page has them. */
async function openGuidelines() {
  at("guide-dialog").showModal();
  const page = await fetch("/help").then((response) => response.text()).catch(() => "");
  const found = new DOMParser().parseFromString(page, "text/html").querySelector(".guidelines");
  at("guidelines").replaceChildren(found ?? "There are none so far. Whoever leads the project can write them.");
}

/** Give items like the shown one its label, or that of the last answer. */
function openBulk() {
  const card = deck.card ?? lastCard;
  if (!card || !annotator) return;
  const label = card.answer?.label ?? lastCard?.answer?.label ?? "";
  bulk.open(card, annotator, label);
}

async function labelSimilar(items, label) {
  const { labeled, left_out } = await send("/api/bulk", { items, label });
  deck.answered(items.filter((id) => !left_out.includes(id)), { label });
  at("last").textContent = `${labeled} labelled ${label}${left_out.length ? `, ${left_out.length} left out: others answered them` : ""}`;
  draw();
  progress.again(0);
  fill();
}

function zoom() {
  if (view === "one" && deck.card) reader.zoom();
}

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select")) return;
  const key = event.key.toLowerCase();
  // On a button Space presses it; everywhere else it scrolls.
  if (key === " " && event.target.closest("button, a, summary, [role=option]")) return;
  if (view === "one" && deck.card && reader.key(key, event.shiftKey)) {
    event.preventDefault();
    return;
  }
  const step = { arrowleft: -1, arrowright: 1 }[key];
  const rows = { arrowup: -1, arrowdown: 1 }[key];
  // A key that is held down looks around; it must not answer one item after the other.
  if (event.repeat && !step && !rows) return;
  if (/^[0-9]$/.test(key)) classes.press(key);
  else if (step) move(step);
  else if (rows && view === "grid" && deck.card) move(rows * grid.columns);
  else if (key === "u") undo();
  else if (key === "s") answer({ skip: true });
  else if (key === "g") switchView();
  else if (key === "z") zoom();
  else if (key === "i") toggleDetails();
  else if (key === "b") openBulk();
  else if (key === "escape" || key === "backspace") {
    if (!classes.clear() && reader.zoomed) reader.zoom();
  }
  else if (key === "/") classes.find();
  else if (key === "h") openGuidelines();
  else if (key === "?") at("help-dialog").showModal();
  else return;
  event.preventDefault();
}

function wire() {
  onTrouble(drawWaiting);
  document.addEventListener("keydown", pressed);
  at("undo").addEventListener("click", undo);
  at("skip").addEventListener("click", () => answer({ skip: true }));
  at("back").addEventListener("click", () => move(-1));
  at("forward").addEventListener("click", () => move(1));
  at("view").addEventListener("click", switchView);
  at("guide").addEventListener("click", openGuidelines);
  at("zoom")?.addEventListener("click", zoom);
  at("help").addEventListener("click", () => at("help-dialog").showModal());
  at("info")?.addEventListener("click", toggleDetails);
  at("bulk").addEventListener("click", openBulk);
  if (at("person").tagName === "BUTTON") {
    at("person").addEventListener("click", () => askName().then(() => location.reload()));
  }
  document.addEventListener("visibilitychange", () => {
    shownAt = performance.now();
  });
}
