/* A call of which nobody saw the end: a person says what became of it. */

import { ApiError, request } from "#app/api.js";
import { clone, one, setText } from "#app/dom.js";
import { toolWords } from "#chat/phrases.js";
import { showValue } from "#chat/values.js";

/** @typedef {import("#chat/run-state.js").Doubt} Doubt */

export class DoubtCard {
  /**
   * @param {Doubt} doubt
   * @param {HTMLElement | undefined} element what the server rendered, if it did
   * @param {() => void} settled the server took the word
   */
  constructor(doubt, element, settled) {
    this.doubt = doubt;
    this.settled = settled;
    this.element = element ?? clone("doubt-template");
    this.element.dataset.doubt = doubt.run;
    setText(one("[data-title]", this.element), toolWords(doubt.tool));
    setText(one("[data-tool]", this.element), doubt.tool);
    one("[data-args]", this.element).replaceChildren(showValue(doubt.args));
    this.buttons = /** @type {NodeListOf<HTMLButtonElement>} */ (this.element.querySelectorAll("[data-outcome-is]"));
    for (const button of this.buttons) button.addEventListener("click", () => this.#settle(button.dataset.outcomeIs ?? ""));
  }

  /** @param {string} outcome */
  async #settle(outcome) {
    const problem = one("[data-problem]", this.element);
    const { value: result } = /** @type {HTMLInputElement} */ (one("[data-result]", this.element));
    problem.hidden = true;
    this.#busy(true);
    try {
      await request("POST", `/runs/${this.doubt.run}/resolve`, { call: this.doubt.call, outcome, result: result.trim() });
      this.settled();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#busy(error.code === "nothing_to_resolve" || error.code === "not_found");
      problem.hidden = false;
      setText(problem, error.message);
    }
  }

  /** @param {boolean} busy */
  #busy(busy) {
    this.element.setAttribute("aria-busy", String(busy));
    for (const button of this.buttons) button.disabled = busy;
  }
}
