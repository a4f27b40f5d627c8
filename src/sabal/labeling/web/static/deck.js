// The items that this page holds, in order: which one is shown, and what was said of each.

export class Deck {
  cards = [];
  position = 0;
  #known = new Map();
  #answered = [];

  /** The card that is shown; null when everything so far is answered. */
  get card() {
    return this.cards[this.position] ?? null;
  }

  /** How many cards are not answered. */
  get open() {
    return this.cards.filter((card) => !card.answer).length;
  }

  /** How many of them are still to come, the shown one included. */
  get ahead() {
    return this.cards.slice(this.position).filter((card) => !card.answer).length;
  }

  /** Take in items from the server, by rank; those already here stay as they are. */
  add(items) {
    const { card: shown } = this;
    const fresh = items.filter((item) => !this.#known.has(item.id));
    for (const item of fresh) {
      const card = { answer: null, ...item };
      this.#known.set(item.id, card);
      this.cards.push(card);
    }
    this.cards.sort((one, two) => one.round - two.round || one.rank - two.rank);
    if (shown) this.position = this.cards.indexOf(shown);
    else this.#goToOpen();
    return fresh.length;
  }

  /** Mark items as answered that were answered elsewhere, and go to the next open one. */
  answered(ids, answer) {
    for (const id of ids) {
      const card = this.#known.get(id);
      if (card) card.answer = answer;
    }
    if (this.card?.answer) this.#goToOpen();
  }

  /** Answer the shown card ({label} or {skip}) and go to the next open one. */
  answer(answer) {
    const card = this.card;
    card.answer = answer;
    this.#answered.push(card);
    this.#goToOpen();
    return card;
  }

  /** Take back the latest answer of this visit and show its card; null if there is none. */
  undo() {
    const card = this.#answered.pop();
    return card ? this.reopen(card.id) : null;
  }

  /** Show a card as unanswered; null if it is not here. */
  reopen(id) {
    const card = this.#known.get(id);
    if (!card) return null;
    card.answer = null;
    this.position = this.cards.indexOf(card);
    return card;
  }

  /** Forget an answer that the server would not take. */
  refuse(id) {
    const at = this.#answered.findLastIndex((card) => card.id === id);
    if (at >= 0) this.#answered.splice(at, 1);
    this.reopen(id);
  }

  /** Look at another card, `step` places away. */
  move(step) {
    const last = this.cards.length - 1;
    if (last >= 0) this.position = Math.max(0, Math.min(last, this.position + step));
  }

  /** Show a card by its id. */
  select(id) {
    this.position = this.cards.indexOf(this.#known.get(id));
  }

  /** What a grid shows: everything from the oldest round on that has something open. */
  page() {
    const rounds = this.cards.filter((card) => !card.answer || card === this.card);
    const oldest = Math.min(...rounds.map((card) => card.round));
    return this.cards.filter((card) => card.round >= oldest);
  }

  #goToOpen() {
    const later = this.cards.findIndex((card, at) => at >= this.position && !card.answer);
    const any = later >= 0 ? later : this.cards.findIndex((card) => !card.answer);
    this.position = any >= 0 ? any : this.cards.length;
  }
}
