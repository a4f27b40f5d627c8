// Where the project is: asked for again and again, and drawn.

import { get } from "./api.js";
import { currentTrouble, onTrouble } from "./connection.js";

const NEWS_LASTS = 8000;
const WORDS = {
  idle: "Ready",
  waiting: "Ready",
  features: "Reading the items",
  training: "Learning from your labels",
  choosing: "Choosing the next batch",
  failed: "Learning failed",
};
const BUSY = ["features", "training", "choosing"];

export class Progress {
  status = null;
  #changed;
  #unsent;
  #since = 0;
  #news = "";
  #timer = null;
  #asking = false;

  /**
   * changed: called with the new status, the one before, and whether every answer was stored when
   * the question was asked; gives the pause until the next one. unsent: says how many were not.
   */
  constructor(changed, unsent) {
    this.#changed = changed;
    this.#unsent = unsent;
    onTrouble(() => this.draw());
    document.addEventListener("visibilitychange", () => this.again(0));
  }

  get busy() {
    return BUSY.includes(this.status?.training);
  }

  /** Ask now, or after a pause; only one question is under way at any time. */
  again(pause) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), pause);
  }

  /** Count answers that the server has not told us about yet. */
  count(step) {
    this.#since += step;
    this.draw();
  }

  async #ask() {
    if (document.hidden || this.#asking) return;
    this.#asking = true;
    const before = this.status;
    const unsent = this.#unsent();
    const counted = Math.sign(this.#since) * Math.max(0, Math.abs(this.#since) - unsent);
    let settled = !unsent;
    try {
      this.status = await get("/api/status");
      this.#since -= counted;
      if (before && (this.status.round ?? -1) > (before.round ?? -1)) this.#tellRound();
    } catch {
      // The page says that the server is away; the next question may find it again.
      settled = false;
    }
    this.draw();
    const pause = await this.#changed(this.status, before, settled);
    this.#asking = false;
    this.again(pause);
  }

  #tellRound() {
    const { round } = this.status;
    this.#news = round
      ? `The model has learned: batch ${round + 1} is here`
      : "The first batch is here";
    document.getElementById("live").textContent = this.#news;
    setTimeout(() => {
      this.#news = "";
      this.draw();
    }, NEWS_LASTS);
  }

  draw() {
    const { status } = this;
    if (!status) return;
    const { size, answered } = status.batch;
    // Where several people answer every item, one more answer need not complete an item.
    const since = status.overlap > 1 ? 0 : this.#since;
    const done = Math.max(0, Math.min(size, answered + since));
    const older = status.remaining - (size - answered);
    const rest = [older > 0 && `${older} older open`, status.partly > 0 && `${status.partly} partly answered`];
    put("batch-number", status.round === null ? "" : String(status.round + 1));
    bar("batch-bar", done, size);
    put("batch-text", [`${done} of ${size}`, ...rest.filter(Boolean)].join(" · "));
    bar("budget-bar", status.labeled, status.budget);
    put("budget-text", `${status.labeled} of ${status.budget}`);
    const pill = document.getElementById("training");
    const trouble = currentTrouble();
    if (trouble) {
      pill.dataset.state = "failed";
      pill.textContent = trouble.title;
      return;
    }
    pill.dataset.state = this.busy ? "busy" : status.training;
    const share = status.training === "features" ? ` ${Math.round(100 * status.progress)} %` : "";
    pill.textContent = this.#news && !this.busy ? this.#news : WORDS[status.training] + share;
    pill.classList.toggle("news", Boolean(this.#news) && !this.busy);
  }
}

function put(id, words) {
  document.getElementById(id).textContent = words;
}

function bar(id, value, max) {
  const element = document.getElementById(id);
  element.max = Math.max(max, 1);
  element.value = value;
}
