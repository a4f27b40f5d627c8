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
      button.addEventListener("click", (event) => {
        choose(button.dataset.label);
        // After a click of the mouse, Space is to scroll and not to choose this class again.
        if (event.detail) button.blur();
      });
    }
    this.#find?.addEventListener("input", () => this.#filter());
    this.#find?.addEventListener("keydown", (event) => this.#inFind(event));
  }

  /**
   * A digit was pressed: choose once the number is complete. A number that no class has is cleared
   * as a whole, so that its last digit does not become the first one of the next number.
   */
  press(digit) {
    const digits = this.#digits + digit;
    const found = this.#buttons.find((button) => button.dataset.keys === digits);
    const begins = this.#buttons.some((button) => button.dataset.keys.startsWith(digits));
    const complete = digits.length >= (this.#buttons[0]?.dataset.keys.length ?? 1);
    this.#setDigits(complete ? "" : digits, begins || found ? "" : `no class ${digits}${complete ? "" : "…"}`);
    if (found) this.#choose(found.dataset.label);
  }

  /** Forget digits that were typed; tells whether there were any. */
  clear() {
    const typed = Boolean(this.#digits);
    this.#setDigits("");
    return typed;
  }

  /** Whether the buttons are those of `names`, in that order. */
  are(names) {
    const own = this.#buttons.map((button) => button.dataset.label);
    return own.length === names.length && own.every((name, at) => name === names[at]);
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

  #setDigits(digits, wrong = "") {
    this.#digits = digits;
    if (this.#typed) {
      this.#typed.textContent = wrong || digits;
      this.#typed.classList.toggle("wrong", Boolean(wrong));
    }
    clearTimeout(this.#timer);
    if (digits || wrong) this.#timer = setTimeout(() => this.#setDigits(""), DIGITS_END);
  }

  #filter() {
    const wanted = this.#find.value.trim().toLocaleLowerCase();
    let first = Boolean(wanted);
    for (const button of this.#buttons) {
      button.hidden = !button.dataset.label.toLocaleLowerCase().includes(wanted);
      button.classList.toggle("first", first && !button.hidden);
      first &&= button.hidden;
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
