/* A call that waits for a person's word: what it would do, and the buttons that decide it. */

import { ApiError, request } from "#app/api.js";
import { clone, h, one, setText } from "#app/dom.js";
import { format, gettext, moment } from "#app/i18n.js";
import { ArgumentForm } from "#chat/argument-form.js";
import { sentence, toolWords, verdictWords } from "#chat/phrases.js";
import { renderInto } from "#chat/render.js";
import { SIGN } from "#chat/run-state.js";
import { showValue } from "#chat/values.js";

/** @typedef {import("#chat/run-state.js").Approval} Approval */

const GONE = new Set(["already_decided", "approval_expired", "not_found"]);

export class ApprovalCard {
  /**
   * @param {Approval} approval
   * @param {HTMLElement} [element] what the server rendered, if it did
   * @param {(approval: Approval) => void} [decided] the server took the decision; `approval` is what has become of it
   */
  constructor(approval, element, decided = () => {}) {
    this.approval = approval;
    this.decided = decided;
    this.element = element ?? clone("approval-template");
    this.element.dataset.approval = approval.id;
    /** @type {ArgumentForm | null} */
    this.form = null;
    this.args = one("[data-args]", this.element);
    this.edit = /** @type {HTMLFormElement} */ (one("[data-edit]", this.element));
    this.comment = /** @type {HTMLInputElement} */ (one("[data-comment]", this.element));
    this.problem = one("[data-problem]", this.element);
    this.#describe();
    for (const button of this.#buttons("[data-decide]")) button.addEventListener("click", () => this.#decide(button.dataset.decide ?? ""));
    one("[data-change]", this.element).addEventListener("click", () => this.#change());
    one("[data-back]", this.element).addEventListener("click", () => this.#discard());
    this.edit.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#decide("approve");
    });
    if (!approval.whole) this.#readWhole();
  }

  #describe() {
    const { tool, args, expires, why, approvers } = this.approval;
    const signs = tool === SIGN;
    this.element.classList.toggle("request-sign", signs);
    setText(one("[data-title]", this.element), signs ? gettext("a draft to sign") : toolWords(tool));
    setText(one("[data-tool]", this.element), signs ? "" : tool);
    if (signs) this.#judge();
    const reason = one("[data-why]", this.element);
    setText(reason, sentence(why));
    reason.hidden = !why;
    if (signs && typeof args.answer === "string") renderInto(this.args, args.answer);
    else this.args.replaceChildren(showValue(args));
    this.args.classList.toggle("prose", signs && typeof args.answer === "string");
    const open = format(gettext("Open until %(time)s"), { time: moment(expires) });
    const others = format(gettext("%(group)s decides"), { group: approvers });
    setText(one("[data-expiry]", this.element), approvers ? `${others} · ${open}` : open);
    // Where a group decides, the person who asked only sees what waits.
    for (const part of this.#buttons(".request-actions, .request-comment")) part.hidden = approvers !== "";
  }

  /** What the evaluator said stands beside the draft. */
  #judge() {
    const { verdict } = this.approval;
    const place = one("[data-verdict]", this.element);
    place.hidden = !verdict;
    if (!verdict) return;
    place.dataset.state = verdict.verdict;
    setText(one("[data-verdict-words]", place), verdictWords(verdict.verdict));
    one("ul", place).replaceChildren(...verdict.reasons.map((reason) => h("li", {}, reason)));
  }

  /** Long arguments come shortened with the events; nobody decides on half of them. */
  async #readWhole() {
    this.#busy(true);
    try {
      const { items } = await request("GET", "/approvals?limit=200");
      const row = items.find((/** @type {any} */ r) => r.id === this.approval.id);
      if (row) Object.assign(this.approval, { args: row.arguments, whole: true });
      this.#describe();
      this.#busy(false);
    } catch (error) {
      this.#say(error);
    }
  }

  #change() {
    this.form = new ArgumentForm(this.edit, this.approval.args);
    this.#editing(true);
    this.form.focus();
  }

  #discard() {
    this.form = null;
    this.edit.replaceChildren();
    this.#editing(false);
    one("[data-change]", this.element).focus();
  }

  /** @param {boolean} editing */
  #editing(editing) {
    this.edit.hidden = !editing;
    this.args.hidden = editing;
    one("[data-change]", this.element).hidden = editing;
    one("[data-back]", this.element).hidden = !editing;
    setText(one("[data-words]", this.element), editing ? gettext("Approve once, as changed") : gettext("Approve once"));
    this.problem.hidden = true;
  }

  /** @param {string} decision */
  async #decide(decision) {
    this.problem.hidden = true;
    const changed = (decision === "approve" || decision === "allow") && this.form ? this.form.read() : undefined;
    if (changed === null) return; // the form shows what cannot be read
    this.#busy(true);
    try {
      const row = await decide(this.approval.id, decision, this.comment.value.trim(), changed);
      this.decided(became(this.approval, row));
    } catch (error) {
      this.#busy(false);
      this.#say(error);
    }
  }

  /** @param {unknown} error */
  #say(error) {
    if (!(error instanceof ApiError)) throw error;
    this.problem.hidden = false;
    setText(this.problem, error.message);
    if (GONE.has(error.code)) this.#busy(true);
  }

  /** @param {boolean} busy */
  #busy(busy) {
    this.element.setAttribute("aria-busy", String(busy));
    for (const button of this.#buttons("button")) button.disabled = busy;
  }

  /** @param {string} selector */
  #buttons(selector) {
    return /** @type {NodeListOf<HTMLButtonElement>} */ (this.element.querySelectorAll(selector));
  }
}

/**
 * @param {string} id
 * @param {string} decision
 * @param {string} [comment]
 * @param {object} [args] changed arguments
 */
export function decide(id, decision, comment = "", args) {
  return request("POST", `/approvals/${id}`, { decision, comment, ...(args ? { args } : {}) });
}

/**
 * @param {Approval} approval
 * @param {any} row of the REST API
 * @returns {Approval}
 */
function became(approval, row) {
  return { ...approval, status: row.state === "consumed" ? "approved" : row.state, args: row.edited ?? row.arguments, comment: row.comment };
}
