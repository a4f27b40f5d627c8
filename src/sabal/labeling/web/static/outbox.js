// Answers on their way. Each stays in localStorage until the server has stored it, so that neither
// a lost connection nor a closed tab loses one. They leave one by one, in the order they were made.

import { post, Refused } from "./api.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

export class Outbox {
  #prefix;
  #changed;
  #waiting = [];
  #sending = false;
  #made = 0;
  #wake = null;

  /** mark: tells projects apart. changed: called whenever `size` or `stuck` may have changed. */
  constructor(mark, changed) {
    this.#prefix = `sabal:${mark}:outbox:`;
    this.#changed = changed;
    this.stuck = false;
    for (const key of Object.keys(localStorage).sort()) {
      if (key.startsWith(this.#prefix)) {
        this.#waiting.push({ key, ...JSON.parse(localStorage.getItem(key)) });
      }
    }
    addEventListener("online", () => this.#wake?.());
  }

  get size() {
    return this.#waiting.length;
  }

  /** Send what an earlier visit left behind; resolves once nothing waits any more. */
  async flush() {
    await this.#send();
  }

  /** Keep, then send. Resolves with what the server says, rejects when it refuses for good. */
  add(path, body) {
    const key = `${this.#prefix}${Date.now()}-${String(this.#made++).padStart(6, "0")}`;
    try {
      localStorage.setItem(key, JSON.stringify({ path, body }));
    } catch {
      // No room or no permission: it is still sent for as long as this page is open.
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, path, body, resolve, reject });
      this.#changed();
      this.#send();
    });
  }

  async #send() {
    if (this.#sending) return;
    this.#sending = true;
    let pause = FIRST_PAUSE;
    while (this.#waiting.length) {
      const first = this.#waiting[0];
      try {
        const answer = await post(first.path, first.body);
        this.#settled(first);
        first.resolve?.(answer);
        pause = FIRST_PAUSE;
      } catch (error) {
        if (error instanceof Refused && error.final) {
          this.#settled(first);
          first.reject?.(error);
          continue;
        }
        this.stuck = true;
        this.#changed();
        await this.#rest(pause);
        pause = Math.min(2 * pause, LONGEST_PAUSE);
      }
    }
    this.#sending = false;
  }

  #settled(sent) {
    this.#waiting.shift();
    localStorage.removeItem(sent.key);
    this.stuck = false;
    this.#changed();
  }

  #rest(milliseconds) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, milliseconds);
    });
  }
}
