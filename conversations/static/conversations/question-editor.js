/* A message of the user, written anew in its place, with those of its files that are not taken off. */

import { h, icon, one, setText } from "#app/dom.js";
import { format, gettext } from "#app/i18n.js";
import { isPlainEnter } from "#chat/composer.js";
import { newId } from "#chat/outbox.js";

export class QuestionEditor {
  /**
   * @param {import("#chat/question.js").Question} question
   * @param {(content: string, files: string[], clientId: string) => Promise<string>} send resolves to what went wrong, in words; empty when it was taken
   */
  constructor(question, send) {
    this.question = question;
    this.send = send;
    this.tried = { what: "", id: "" }; // the same words again are the same message
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
    for (const item of this.#items) item.append(this.#remover(item));
    this.area.focus();
    this.area.setSelectionRange(this.area.value.length, this.area.value.length);
  }

  #close() {
    this.#show(false);
    one("[data-edit]", this.question.element).focus();
  }

  get #items() {
    return [.../** @type {NodeListOf<HTMLElement>} */ (this.question.fileList.querySelectorAll("li"))];
  }

  /** @param {HTMLElement} item a file of the message */
  #remover(item) {
    const words = format(gettext("Remove %(name)s"), { name: item.dataset.filename });
    const button = h("button", { class: "icon-button", type: "button", "data-remove": "", "aria-label": words, title: words }, icon("x"));
    button.addEventListener("click", () => {
      item.hidden = true;
      this.area.focus();
    });
    return button;
  }

  /** @param {boolean} open */
  #show(open) {
    for (const item of this.#items) {
      item.querySelector("[data-remove]")?.remove();
      item.hidden = false;
    }
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
    const files = this.#items.filter((item) => !item.hidden).map((item) => item.dataset.id ?? "");
    if ((!content && files.length === 0) || this.form.ariaBusy === "true") return;
    this.form.ariaBusy = "true";
    const what = JSON.stringify([content, files]);
    if (what !== this.tried.what) this.tried = { what, id: newId() };
    const problem = await this.send(content, files, this.tried.id);
    this.form.ariaBusy = null;
    this.problem.hidden = !problem;
    setText(this.problem, problem);
  }
}
