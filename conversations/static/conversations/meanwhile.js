/* Messages sent while a run is going on: taken back while nobody has read them, given back when the run was stopped. */

import { ApiError, request } from "#app/api.js";
import { toast } from "#app/toast.js";
import { decide } from "#chat/approval-card.js";
import { answer } from "#chat/inquiry-card.js";
import { open, pending } from "#chat/run-state.js";
import { shown } from "#chat/shell.js";

const OTHERS_MS = 1500; // the page where it was written comes first

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
    this.timer = 0;
  }

  /** @param {Question} question */
  async takeBack(question) {
    if (!(await attempt(request("POST", `/messages/${question.id}/recall`)))) return;
    this.thread.remove(question.id);
    this.composer.giveBack(question.content, question.files);
  }

  /** Every request that the run waits for; then it goes on and reads what was sent. @param {Run} run */
  async withdraw(run) {
    for (const approval of pending(run)) await attempt(decide(approval.id, "withdraw"));
    for (const inquiry of open(run)) await attempt(answer(inquiry, "withdraw"));
  }

  /** The server has given a message back. @param {string} id */
  returned(id) {
    const question = this.thread.remove(id);
    if (question) this.collectSoon(this.sent.has(question.clientId));
  }

  /** @param {Run} run */
  ended(run) {
    if (run.status !== "cancelled" || run.reason !== "user") return;
    const unread = this.thread.injected.filter((q) => this.thread.isUnread(q, run));
    for (const question of unread) this.returned(question.id);
  }

  /**
   * What nobody had read when its run was stopped goes into the composer where it was written, or where somebody is
   * looking. The server gives it to one page.
   * @param {boolean} written here
   */
  collectSoon(written) {
    clearTimeout(this.timer);
    if (written || !document.hidden) this.timer = setTimeout(() => this.#collect(), written ? 0 : OTHERS_MS);
    else document.addEventListener("visibilitychange", () => this.collectSoon(false), { once: true });
  }

  async #collect() {
    try {
      const { items } = await request("POST", `/conversations/${shown.conversation}/collect`);
      for (const item of items) this.composer.giveBack(item.content, item.attachments);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error; // they wait on the server for the next page
    }
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
