// Choosing a class: its button, its digits, or its name in the search box.

const DIGITS_END = 1500;

export class Classes {
  #buttons;
  #choose;
  #find;
  #typed;
  #digits = "";
  #timer = null;

  /** choose: called with the label. */
  constructor(choose) {
    this.#choose = choose;
    this.#buttons = [...document.querySelectorAll("#classes button")];
    this.#find = document.getElementById("find");
    this.#typed = document.getElementById("typed");
    for (const button of this.#buttons) {
      button.addEventListener("click", () => choose(button.dataset.label));
    }
    this.#find?.addEventListener("input", () => this.#filter());
    this.#find?.addEventListener("keydown", (event) => this.#inFind(event));
  }

  /** A digit was pressed: choose at once if it is complete, else wait for the next one. */
  press(digit) {
    this.#setDigits(this.#digits + digit);
    const found = this.#buttons.find((button) => button.dataset.keys === this.#digits);
    if (found) {
      this.#setDigits("");
      this.#choose(found.dataset.label);
    } else if (!this.#buttons.some((button) => button.dataset.keys.startsWith(this.#digits))) {
      this.#setDigits("");
    }
  }

  /** Go to the search box, where there is one. */
  find() {
    this.#find?.focus();
  }

  /** Mark the class that was given to the shown card, and allow choosing or not. */
  draw(card) {
    for (const button of this.#buttons) {
      button.setAttribute("aria-disabled", String(!card));
      const chosen = Boolean(card?.answer) && card.answer.label === button.dataset.label;
      button.setAttribute("aria-pressed", String(chosen));
    }
  }

  #setDigits(digits) {
    this.#digits = digits;
    if (this.#typed) this.#typed.textContent = digits;
    clearTimeout(this.#timer);
    if (digits) this.#timer = setTimeout(() => this.#setDigits(""), DIGITS_END);
  }

  #filter() {
    const wanted = this.#find.value.trim().toLocaleLowerCase();
    for (const button of this.#buttons) {
      button.hidden = !button.dataset.label.toLocaleLowerCase().includes(wanted);
    }
  }

  #inFind(event) {
    if (event.key === "Enter") {
      const first = this.#buttons.find((button) => !button.hidden);
      if (first) this.#choose(first.dataset.label);
    } else if (event.key !== "Escape") {
      return;
    }
    event.preventDefault();
    this.#find.value = "";
    this.#filter();
    if (event.key === "Escape") this.#find.blur();
  }
}
