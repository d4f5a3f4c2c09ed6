/* Keeps the newest in view, unless the reader has gone elsewhere. */

import { one } from "#app/dom.js";

const NEAR_PX = 80;

export class Scroller {
  constructor() {
    this.frame = one(".thread-scroll");
    this.button = one(".jump");
    this.following = true;
    this.frame.addEventListener("scroll", () => this.#look(), { passive: true });
    this.button.addEventListener("click", () => this.toEnd());
    new ResizeObserver(() => this.#grown()).observe(one(".thread"));
    new ResizeObserver(() => this.#grown()).observe(this.frame);
    this.toEnd();
  }

  toEnd() {
    this.following = true;
    this.frame.scrollTop = this.frame.scrollHeight;
    this.#look();
  }

  #grown() {
    if (this.following) this.frame.scrollTop = this.frame.scrollHeight;
    else this.#look();
  }

  #look() {
    const left = this.frame.scrollHeight - this.frame.scrollTop - this.frame.clientHeight;
    this.following = left < NEAR_PX;
    this.button.hidden = this.following;
  }
}
