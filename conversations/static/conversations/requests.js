/* The cards of a run that waits for a person. A card stays as it is, with what is typed into it, until it is decided. */

import { ApprovalCard } from "#chat/approval-card.js";
import { DoubtCard } from "#chat/doubt-card.js";
import { InquiryCard } from "#chat/inquiry-card.js";
import { open, pending, requeued } from "#chat/run-state.js";

/** @typedef {import("#chat/run-state.js").Run} Run */

export class Requests {
  /**
   * @param {HTMLElement} root
   * @param {() => void} changed the run is to be drawn again
   */
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    /** @type {Map<string, HTMLElement>} by approval, or by the position of the call in doubt */
    this.cards = new Map();
  }

  /** @param {Run} run */
  update(run) {
    const wanted = new Set(pending(run).map((a) => a.id));
    if (run.doubt) wanted.add(run.doubt.call);
    for (const { id } of open(run)) wanted.add(id);
    for (const [key, card] of this.cards) if (!wanted.has(key)) this.#remove(key, card);
    for (const approval of pending(run)) {
      this.#add(approval.id, () => new ApprovalCard(approval, undefined, (now) => this.#decided(run, approval, now)).element);
    }
    const { doubt } = run;
    if (doubt) this.#add(doubt.call, () => new DoubtCard(doubt, undefined, () => this.#settled(run)).element);
    for (const inquiry of open(run)) {
      this.#add(inquiry.id, () => new InquiryCard(inquiry, undefined, (status) => this.#answered(run, inquiry, status)).element);
    }
    this.root.hidden = this.cards.size === 0;
  }

  /** The event that tells of it may still be on its way. @param {Run} run @param {import("#chat/run-state.js").Approval} approval @param {import("#chat/run-state.js").Approval} now */
  #decided(run, approval, now) {
    approval.status = now.status;
    if (pending(run).length === 0 && run.status === "waiting") requeued(run);
    this.changed();
  }

  /** @param {Run} run @param {import("#chat/run-state.js").Inquiry} inquiry @param {string} status */
  #answered(run, inquiry, status) {
    inquiry.status = status;
    if (open(run).length === 0 && run.status === "waiting") requeued(run);
    this.changed();
  }

  /** @param {Run} run */
  #settled(run) {
    if (run.status === "waiting") requeued(run);
    this.changed();
  }

  /** @param {string} key @param {() => HTMLElement} make */
  #add(key, make) {
    if (this.cards.has(key)) return;
    const card = make();
    this.cards.set(key, card);
    this.root.append(card);
  }

  /** @param {string} key @param {HTMLElement} card */
  #remove(key, card) {
    const focused = card.contains(document.activeElement);
    card.remove();
    this.cards.delete(key);
    if (focused) /** @type {HTMLElement | null} */ (document.querySelector(".composer textarea"))?.focus();
  }
}
