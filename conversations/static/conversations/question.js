/* A message of the user in the thread. */

import { clone, copyText, one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { toast } from "#app/toast.js";
import { filesOf, showFiles } from "#chat/file-list.js";
import { startPin } from "#chat/marks.js";

const TALL_PX = 260;

export class Question {
  /**
   * @param {HTMLElement | null} element what the server rendered, if it did
   * @param {string} [content]
   * @param {import("#chat/file-list.js").Attached[]} [files]
   */
  constructor(element, content = "", files = []) {
    this.element = element ?? clone("question-template");
    this.bubble = one(".bubble", this.element);
    this.note = one("[data-note]", this.element);
    this.fileList = one("[data-files]", this.element);
    if (!element) this.bubble.textContent = content;
    if (!element) showFiles(this.fileList, files);
    one("[data-copy]", this.element).addEventListener("click", async () => {
      await copyText(this.bubble.textContent ?? "");
      toast(gettext("Copied"));
    });
    startPin(this.element);
    /** Sent while a run was going on. */
    this.injected = "injected" in this.element.dataset;
    /** The writer's own id of it, if this page knows it. */
    this.clientId = "";
    /** That run, as far as the page knows. */
    this.run = this.element.dataset.run ?? "";
    /** @type {import("#chat/question-editor.js").QuestionEditor | null} */
    this.editor = null;
    this.#fold();
  }

  get id() {
    return this.element.dataset.message ?? "";
  }

  get content() {
    return this.bubble.textContent ?? "";
  }

  get files() {
    return filesOf(this.fileList);
  }

  /** Long messages show their beginning. */
  #fold() {
    const more = one("[data-more]", this.element);
    more.addEventListener("click", () => {
      this.bubble.classList.add("expanded");
      more.hidden = true;
    });
    requestAnimationFrame(() => {
      if (this.bubble.scrollHeight <= TALL_PX) return;
      this.bubble.classList.add("long");
      more.hidden = false;
    });
  }

  /**
   * @param {"unsent" | "sent"} state
   * @param {string} words
   */
  setState(state, words) {
    this.element.dataset.state = state;
    setText(this.note, words);
    for (const name of ["edit", "pin"]) one(`[data-${name}]`, this.element).hidden = state === "unsent";
    one("[data-take-back]", this.element).hidden = state !== "unsent";
    one("[data-withdraw]", this.element).hidden = true;
  }

  /**
   * What may still be done with a message sent meanwhile.
   * @param {{unread: boolean, waits: boolean}} state nobody has read it; its run waits for a decision
   */
  offer({ unread, waits }) {
    one("[data-take-back]", this.element).hidden = !unread;
    one("[data-withdraw]", this.element).hidden = !unread || !waits;
    setText(this.note, unread && waits ? gettext("The agent reads it after your decision") : gettext("Added while it was working"));
  }

  /**
   * @param {"take-back" | "withdraw"} action
   * @param {() => void} then
   */
  on(action, then) {
    one(`[data-${action}]`, this.element).onclick = then;
  }

  /** @param {string} id the message's id, once the server has given it one */
  setMessage(id) {
    this.element.dataset.message = id;
  }
}
