// Drawing items: one at a time, or many in a grid. Whatever people wrote goes in as text.

import { markTiny } from "./tiny.js";

/** Have the picture of a card ready before it is shown. */
export function prepare(card) {
  if (card.kind === "image" && !card.picture) card.picture = picture(card);
}

/** Draw a card as the only one. */
export function drawOne(place, card) {
  prepare(card);
  const content = card.picture ?? readable(card);
  if (place.firstChild !== content || place.childElementCount !== 1) place.replaceChildren(content);
  place.dataset.answer = said(card);
}

/** What was said of a card, in words; empty if nothing was. */
export function said(card) {
  if (!card.answer) return "";
  return card.answer.skip ? "skipped" : card.answer.label;
}

/** A grid of cards with one selected. */
export class Grid {
  #list;
  #pick;
  #tiles = new Map();

  /** pick: called with the id of a card that was clicked. */
  constructor(list, pick) {
    this.#list = list;
    this.#pick = pick;
  }

  draw(cards, current) {
    const tiles = cards.map((card) => this.#tile(card));
    const before = [...this.#list.children];
    if (tiles.length !== before.length || tiles.some((tile, at) => tile !== before[at])) {
      this.#list.replaceChildren(...tiles);
    }
    cards.forEach((card, at) => {
      const tile = tiles[at];
      const selected = card === current;
      tile.setAttribute("aria-selected", String(selected));
      tile.tabIndex = selected ? 0 : -1;
      tile.querySelector(".badge").textContent = said(card);
      tile.classList.toggle("answered", Boolean(card.answer));
      tile.setAttribute("aria-label", `Item ${at + 1}${card.answer ? `, ${said(card)}` : ", open"}`);
      if (selected) tile.scrollIntoView({ block: "nearest" });
      if (selected && this.#list.contains(document.activeElement)) tile.focus({ preventScroll: true });
    });
  }

  /** How many tiles are in a row, to move up and down by. */
  get columns() {
    const tiles = [...this.#list.children];
    const second = tiles.findIndex((tile) => tile.offsetTop > tiles[0].offsetTop);
    return second > 0 ? second : Math.max(tiles.length, 1);
  }

  #tile(card) {
    if (!this.#tiles.has(card.id)) {
      const tile = document.createElement("li");
      tile.setAttribute("role", "option");
      const badge = document.createElement("span");
      badge.className = "badge";
      badge.dir = "auto";
      tile.append(look(card), badge);
      tile.addEventListener("click", () => this.#pick(card.id));
      this.#tiles.set(card.id, tile);
    }
    return this.#tiles.get(card.id);
  }
}

/** Names and values as rows of a list of terms. */
export function pairs(values) {
  return Object.entries(values).map(([name, value]) => {
    const row = document.createElement("div");
    const term = document.createElement("dt");
    const text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    text.dir = "auto";
    row.append(term, text);
    return row;
  });
}

/** An item as an element: its picture, or its text. */
export function look(card) {
  return card.kind === "image" ? picture(card) : text(card);
}

function picture(card) {
  const image = new Image();
  image.alt = "Image to label";
  image.draggable = false;
  image.addEventListener("error", () => {
    image.alt = "This image cannot be shown: skip it";
    image.classList.add("broken");
  });
  image.dataset.url = card.url;
  image.src = card.url;
  markTiny(image);
  return image;
}

/** A text that can be scrolled with the keyboard when it is long. */
function readable(card) {
  const block = text(card);
  block.tabIndex = 0;
  return block;
}

function text(card) {
  const block = document.createElement("div");
  block.className = "text";
  block.dir = "auto";
  block.textContent = card.content;
  return block;
}
