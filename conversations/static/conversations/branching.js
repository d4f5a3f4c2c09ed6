/* Other ways through the conversation: messages written anew, answers made anew, branches, and the way between them. */

import { ApiError, request } from "#app/api.js";
import { one, setText } from "#app/dom.js";
import { format, gettext } from "#app/i18n.js";
import { toast } from "#app/toast.js";
import { shown } from "#chat/shell.js";

const LOOK_MS = 200;
const PATIENCE_MS = 15_000;
const QUOTED = 80;

/** @typedef {import("#chat/thread.js").Thread} Thread */

export class Branching {
  /**
   * @param {Thread} thread
   * @param {() => Promise<void>} reload shows the conversation as the server has it now
   */
  constructor(thread, reload) {
    this.thread = thread;
    this.reload = reload;
    this.note = one("#branch-note");
    /** The message after which the next one begins a branch; empty: the end of the conversation. */
    this.parent = "";
    one("[data-close]", this.note).addEventListener("click", () => this.atTheEnd());
    thread.root.addEventListener("click", (event) => this.#clicked(event));
  }

  /**
   * @param {import("#chat/question.js").Question} question
   * @param {string} content in other words
   * @param {string[]} attachments those of its files that stay
   * @param {string} clientId
   * @returns {Promise<string>} what went wrong, in words
   */
  edit(question, content, attachments, clientId) {
    return this.#do(() => request("POST", `/messages/${question.id}/edit`, { content, attachments, client_id: clientId }));
  }

  /** The next message goes to the end of the conversation again. @returns {string} where it would have gone */
  atTheEnd() {
    const { parent } = this;
    this.parent = "";
    this.note.hidden = true;
    for (const entry of this.thread.root.querySelectorAll("[data-left]")) entry.removeAttribute("data-left");
    return parent;
  }

  /** @param {Event} event */
  async #clicked({ target }) {
    const button = target instanceof Element && target.closest("button");
    const entry = /** @type {HTMLElement | null} */ (button && button.closest(".question, .answer-block"));
    if (!button || !entry) return;
    if (button.dataset.show) await this.#show(button.dataset.show);
    else if ("regenerate" in button.dataset) await this.#tell(() => request("POST", `/messages/${entry.dataset.message}/regenerate`));
    else if ("branch" in button.dataset && (await this.#freed())) this.#from(entry);
  }

  /** @param {string} message that stands beside the one whose button was pressed */
  async #show(message) {
    await this.#tell(() => request("PATCH", `/conversations/${shown.conversation}`, { branch: message }), gettext("Stop and switch"));
    const group = this.thread.root.querySelector(`[data-message="${CSS.escape(message)}"] .siblings`);
    /** @type {HTMLElement | null | undefined} */ (group?.querySelector("button:not(:disabled)"))?.focus();
    const [position, count] = group?.querySelector(".position")?.textContent?.split("/") ?? [];
    if (position) setText(one("#announcer"), format(gettext("Version %(position)s of %(count)s"), { position, count }));
  }

  /** The next message continues from this answer, beside what follows it now. @param {HTMLElement} entry */
  #from(entry) {
    this.atTheEnd();
    this.parent = entry.dataset.message ?? "";
    const words = one(".answer", entry).textContent?.trim().replace(/\s+/g, " ") ?? "";
    setText(one("[data-from]", this.note), words.length > QUOTED ? `${words.slice(0, QUOTED)}…` : words);
    this.note.hidden = false;
    for (let next = entry.nextElementSibling; next; next = next.nextElementSibling) next.setAttribute("data-left", "");
    one(".composer textarea").focus();
  }

  /** @param {() => Promise<any>} work @param {string} [stopWords] */
  async #tell(work, stopWords) {
    const problem = await this.#do(work, stopWords);
    if (problem) toast(problem);
  }

  /**
   * @param {() => Promise<any>} work
   * @param {string} [stopWords]
   * @returns {Promise<string>} what went wrong, in words
   */
  async #do(work, stopWords) {
    try {
      if (!(await this.#freed(stopWords))) return "";
      await work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error.message;
    }
    this.atTheEnd();
    await this.reload();
    return "";
  }

  /**
   * Nothing is going on, or the reader has it stopped.
   * @param {string} [words] on the button that stops
   * @returns {Promise<boolean>}
   */
  async #freed(words = gettext("Stop and resend")) {
    const run = this.thread.active?.run.id;
    if (!run) return true;
    const dialog = /** @type {HTMLDialogElement} */ (one("#stop-dialog"));
    setText(one("[data-words]", dialog), words);
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
    return dialog.returnValue === "stop" && stopped(run);
  }
}

/** @param {string} run @returns {Promise<boolean>} whether it has ended */
async function stopped(run) {
  const until = Date.now() + PATIENCE_MS;
  let found = await request("POST", `/runs/${run}/cancel`);
  while (!found.ended_at && Date.now() < until) {
    await new Promise((later) => setTimeout(later, LOOK_MS));
    found = await request("GET", `/runs/${run}`);
  }
  if (!found.ended_at) toast(gettext("The work has not ended yet. Try again in a moment."));
  return Boolean(found.ended_at);
}
