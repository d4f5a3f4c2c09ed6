/* A message of the user, written anew in its place. */

import { one, setText } from "#app/dom.js";
import { isPlainEnter } from "#chat/composer.js";
import { newId } from "#chat/outbox.js";

export class QuestionEditor {
  /**
   * @param {import("#chat/question.js").Question} question
   * @param {(content: string, clientId: string) => Promise<string>} send resolves to what went wrong, in words; empty when it was taken
   */
  constructor(question, send) {
    this.question = question;
    this.send = send;
    this.tried = { content: "", id: "" }; // the same words again are the same message
    this.form = /** @type {HTMLFormElement} */ (one("[data-editor]", question.element));
    this.area = /** @type {HTMLTextAreaElement} */ (one("textarea", this.form));
    this.problem = one("[data-problem]", this.form);
    one("[data-edit]", question.element).addEventListener("click", () => this.#open());
    one("[data-close]", this.form).addEventListener("click", () => this.#close());
    this.area.addEventListener("keydown", (event) => this.#key(event));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  #open() {
    this.area.value = this.question.content;
    this.#show(true);
    this.area.focus();
    this.area.setSelectionRange(this.area.value.length, this.area.value.length);
  }

  #close() {
    this.#show(false);
    one("[data-edit]", this.question.element).focus();
  }

  /** @param {boolean} open */
  #show(open) {
    this.form.hidden = !open;
    this.problem.hidden = true;
    this.question.element.toggleAttribute("data-editing", open);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Escape") this.#close();
    if (!isPlainEnter(event)) return;
    event.preventDefault();
    this.#submit();
  }

  async #submit() {
    const content = this.area.value.trim();
    if ((!content && this.question.files.length === 0) || this.form.ariaBusy === "true") return;
    this.form.ariaBusy = "true";
    if (content !== this.tried.content) this.tried = { content, id: newId() };
    const problem = await this.send(content, this.tried.id);
    this.form.ariaBusy = null;
    this.problem.hidden = !problem;
    setText(this.problem, problem);
  }
}
