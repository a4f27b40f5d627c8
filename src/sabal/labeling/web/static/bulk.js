// Labelling several items like one of them at once: each is confirmed, or all of them.

import { get } from "./api.js";
import { look } from "./view.js";

const COUNT = 24;

export class Bulk {
  #dialog = document.getElementById("bulk-dialog");
  #list = document.getElementById("bulk-list");
  #class = document.getElementById("bulk-class");
  #button = document.getElementById("bulk-label");
  #alert = document.getElementById("bulk-alert");
  #label;

  /** label: called with the ids of the confirmed items and their class. */
  constructor(label) {
    this.#label = label;
    this.#list.addEventListener("change", () => this.#count());
    this.#class.addEventListener("change", () => this.#count());
    this.#button.addEventListener("click", () => this.#send());
    document.getElementById("bulk-all").addEventListener("click", () => this.#all());
    document.getElementById("bulk-close").addEventListener("click", () => this.#dialog.close());
  }

  /** Show the items like `card`, to be labelled by `annotator`. */
  async open(card, annotator, label) {
    this.#class.value = label;
    document.getElementById("bulk-this").replaceChildren(look(card));
    this.#list.replaceChildren();
    this.#warn("");
    this.#count();
    this.#dialog.showModal();
    try {
      const { items } = await get("/api/similar", { annotator, item: card.id, count: COUNT });
      this.#list.replaceChildren(...items.map(tile));
      if (!items.length) this.#warn("There is no other item that nobody has answered.");
    } catch (error) {
      this.#warn(error.message);
    }
    this.#count();
  }

  get #boxes() {
    return [...this.#list.querySelectorAll("input")];
  }

  #all() {
    const every = this.#boxes.every((box) => box.checked);
    for (const box of this.#boxes) box.checked = !every;
    this.#count();
  }

  #count() {
    const count = this.#boxes.filter((box) => box.checked).length;
    const label = this.#class.value;
    this.#button.disabled = !count || !label;
    const items = count === 1 ? "1 item" : `${count} items`;
    this.#button.textContent = label ? `Label ${items}: ${label}` : "Choose a class";
  }

  async #send() {
    const chosen = this.#boxes.filter((box) => box.checked).map((box) => box.value);
    this.#button.disabled = true;
    try {
      await this.#label(chosen, this.#class.value);
      this.#dialog.close();
    } catch (error) {
      this.#warn(error.message);
      this.#count();
    }
  }

  #warn(words) {
    this.#alert.textContent = words;
    this.#alert.hidden = !words;
  }
}

function tile(item, at) {
  const line = document.createElement("li");
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.value = item.id;
  box.setAttribute("aria-label", `Item ${at + 1}: ${item.id}`);
  label.append(look(item), box);
  line.append(label);
  return line;
}
