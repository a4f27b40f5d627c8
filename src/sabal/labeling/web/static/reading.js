// Reading an item that is larger than its place: scrolling a text, zooming an image.

import { markTiny } from "./tiny.js";

const LINE = 64;
const PAGE = 0.85;
const SCROLLS = {
  " ": [0, PAGE],
  pagedown: [0, PAGE],
  pageup: [0, -PAGE],
  arrowdown: [0, LINE],
  arrowup: [0, -LINE],
  home: [0, -Infinity],
  end: [0, Infinity],
};
const PANS = { ...SCROLLS, arrowleft: [-LINE, 0], arrowright: [LINE, 0] };

/** The one item that is shown: scrolls with keys, fades where it goes on, zooms. */
export class Reader {
  #place;
  #hint;
  #zoomed = null;

  /** place: where the item is drawn. hint: says that a text goes on. */
  constructor(place, hint) {
    this.#place = place;
    this.#hint = hint;
    place.addEventListener("scroll", () => this.mark(), true);
    place.addEventListener("click", (event) => {
      if (event.target.tagName === "IMG") this.zoom(event);
    });
    hint.addEventListener("click", () => this.key(" ", false));
    addEventListener("resize", () => this.mark());
  }

  get zoomed() {
    return Boolean(this.#zoomed);
  }

  /** Another item is drawn: from its beginning, and in its usual size. */
  begin() {
    this.#leave();
    this.#place.scrollTo(0, 0);
    this.#place.querySelector(".text")?.scrollTo(0, 0);
    this.mark();
  }

  /** A key was pressed: scroll by it; false if it does nothing here. */
  key(key, shift) {
    const part = this.#part();
    const move = (this.#zoomed ? PANS : SCROLLS)[key];
    if (!part || !move) return false;
    const [across, down] = shift && key === " " ? [0, -PAGE] : move;
    const step = Math.abs(down) === PAGE ? down * part.clientHeight : down;
    const far = Number.isFinite(step) ? part.scrollTop + step : step > 0 ? part.scrollHeight : 0;
    part.scrollTo(part.scrollLeft + across, far);
    this.mark();
    return true;
  }

  /** Show an image larger than its place, or as usual again. */
  zoom(event) {
    const image = this.#place.querySelector("img:not(.broken)");
    if (!image) return;
    if (this.#zoomed) {
      this.#leave();
      return;
    }
    if (!image.complete) {
      // Where to scroll follows from its size, which is not known before.
      image.addEventListener("load", () => image.isConnected && !this.#zoomed && this.zoom(event), { once: true });
      return;
    }
    markTiny(image); // it may be here, and its load event not yet
    const { left, top, width, height } = image.getBoundingClientRect();
    const [x, y] = event ? [(event.clientX - left) / width, (event.clientY - top) / height] : [0.5, 0.5];
    this.#zoomed = image;
    this.#place.classList.add("zoomed");
    if (!image.classList.contains("tiny")) image.src = `${image.dataset.url}?large=1`;
    const place = this.#place;
    place.scrollTo(x * place.scrollWidth - place.clientWidth / 2, y * place.scrollHeight - place.clientHeight / 2);
  }

  /** Show by a fade, and in words, that there is more above or below. */
  mark() {
    const text = this.#place.querySelector(".text");
    const below = text ? text.scrollHeight - text.scrollTop - text.clientHeight > 2 : false;
    text?.classList.toggle("more-above", text.scrollTop > 2);
    text?.classList.toggle("more-below", below);
    this.#hint.hidden = !below || this.#place.hidden;
  }

  #leave() {
    if (!this.#zoomed) return;
    this.#place.classList.remove("zoomed");
    this.#zoomed.src = this.#zoomed.dataset.url;
    this.#zoomed = null;
  }

  /** What scrolls: the place of a zoomed image, or a text that is too long. */
  #part() {
    if (this.#zoomed) return this.#place;
    const text = this.#place.querySelector(".text");
    return text && text.scrollHeight > text.clientHeight + 2 ? text : null;
  }
}
