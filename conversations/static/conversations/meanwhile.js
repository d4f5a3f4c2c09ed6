/* Messages sent while a run is going on: taken back while nobody has read them, given back when the run was stopped. */

import { ApiError, request } from "#app/api.js";
import { toast } from "#app/toast.js";
import { decide } from "#chat/approval-card.js";
import { pending } from "#chat/run-state.js";

/** @typedef {import("#chat/run-state.js").Run} Run @typedef {import("#chat/question.js").Question} Question */

export class Meanwhile {
  /**
   * @param {import("#chat/thread.js").Thread} thread
   * @param {import("#chat/composer.js").Composer} composer
   */
  constructor(thread, composer) {
    this.thread = thread;
    this.composer = composer;
    /** @type {Set<string>} client ids of what was sent from this page */
    this.sent = new Set();
  }

  /** @param {Question} question */
  async takeBack(question) {
    if (await attempt(request("POST", `/messages/${question.id}/recall`))) this.returned(question.id);
  }

  /** Every request that the run waits for; then it goes on and reads what was sent. @param {Run} run */
  async withdraw(run) {
    for (const approval of pending(run)) await attempt(decide(approval.id, "withdraw"));
  }

  /**
   * The server has given a message back: it goes where it was written, or where somebody is looking.
   * @param {string} id
   */
  returned(id) {
    const question = this.thread.remove(id);
    if (!question || (document.hidden && !this.sent.has(question.clientId))) return;
    this.composer.giveBack(question.content);
  }

  /** @param {Run} run */
  ended(run) {
    if (run.status !== "cancelled" || run.reason !== "user") return;
    const unread = this.thread.injected.filter((q) => this.thread.isUnread(q, run));
    for (const question of unread) this.returned(question.id);
  }
}

/** @param {Promise<any>} answer */
async function attempt(answer) {
  try {
    await answer;
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    toast(error.message);
    return false;
  }
}
