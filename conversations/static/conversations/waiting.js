/* How many runs wait for this person, beside the link to them. */

import { one, setText } from "#app/dom.js";

export class WaitingCount {
  constructor() {
    this.link = one("[data-waiting]");
    this.runs = new Set((this.link.dataset.waiting ?? "").split(" ").filter(Boolean));
  }

  /** @param {string} id @param {string} status */
  run(id, status) {
    if (status === "waiting") this.runs.add(id);
    else this.runs.delete(id);
    setText(one(".count", this.link), String(this.runs.size));
    this.link.hidden = this.runs.size === 0;
  }
}
