/* Where people write: grows, keeps drafts, knows the limit, sends with Enter, stops what is running. */

import { one, setText } from "#app/dom.js";
import { format, gettext, locale } from "#app/i18n.js";
import { Attachments } from "#chat/attachments.js";

const IME_KEY_CODE = 229;
const DRAFT_PAUSE_MS = 300;

/** @typedef {import("#chat/file-list.js").Attached} Attached */

export class Composer {
  /**
   * @param {{limit: number, draftKey: string, maxBytes: number, maxFiles: number, send: (content: string, files: Attached[]) => void, stop: () => void}} options
   */
  constructor({ limit, draftKey, maxBytes, maxFiles, send, stop }) {
    this.form = one(".composer");
    this.area = /** @type {HTMLTextAreaElement} */ (one("textarea", this.form));
    this.sendButton = /** @type {HTMLButtonElement} */ (one("[type=submit]", this.form));
    this.stopButton = /** @type {HTMLButtonElement} */ (one("[data-stop]", this.form));
    this.hint = one("#composer-hint");
    this.usual = this.hint.textContent ?? "";
    this.limit = limit;
    this.draftKey = draftKey;
    this.onSend = send;
    this.timer = 0;
    /** @type {Attachments | null} */
    this.files = null;
    this.restore();
    this.files = new Attachments({ form: this.form, draftKey, maxBytes, maxFiles, changed: () => this.#allow(), say: (words) => this.#say(words, 0) });
    this.#allow();
    this.area.addEventListener("input", () => this.#changed());
    this.area.addEventListener("paste", (event) => this.#paste(event));
    this.area.addEventListener("keydown", (event) => this.#key(event));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.stopButton.addEventListener("click", () => {
      this.stopButton.disabled = true;
      stop();
    });
    addEventListener("pagehide", () => this.#keep());
  }

  get content() {
    return this.area.value;
  }

  /** @param {string} text */
  set content(text) {
    this.area.value = text;
    this.#changed();
  }

  /** Gives a message back to its writer, after what stands there by now. @param {string} text @param {Attached[]} files */
  giveBack(text, files = []) {
    this.content = [this.content, text].filter((part) => part.trim()).join("\n\n");
    this.files?.giveBack(files);
    this.#keep();
    this.area.focus();
  }

  /** @param {boolean} running */
  setRunning(running) {
    if (this.stopButton.hidden === running) this.stopButton.disabled = false;
    this.stopButton.hidden = !running;
    this.running = running;
    this.#allow();
    this.area.placeholder = running ? gettext("Add to the running work") : gettext("Ask anything");
  }

  restore() {
    try {
      this.area.value = localStorage.getItem(this.draftKey) ?? this.area.value;
    } catch { /* nothing is kept here */ }
    this.#changed();
  }

  /** The draft belongs to a conversation that has an id only now. @param {string} key */
  moveDraft(key) {
    this.#store("");
    this.draftKey = key;
    this.#keep();
    this.files?.moveDraft(key);
  }

  /** Whether there is something to send, and nothing in the way of it. */
  #allow() {
    const isEmpty = !this.content.trim() && (this.files?.isEmpty ?? true);
    const nothing = !this.content.trim() && (this.files?.ready.length ?? 0) === 0;
    this.sendButton.disabled = nothing || this.content.length > this.limit || (this.files?.isBusy ?? false);
    this.sendButton.hidden = Boolean(this.running) && isEmpty;
  }

  #changed() {
    const over = this.content.length > this.limit;
    this.#say(over ? gettext("%(count)s characters: at most %(limit)s can be sent. Shorten the text, or send it in parts.") : "", this.content.length);
    this.#allow();
    if (!CSS.supports("field-sizing", "content")) {
      this.area.style.height = "auto";
      this.area.style.height = `${this.area.scrollHeight}px`;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#keep(), DRAFT_PAUSE_MS);
  }

  /** What could not be sent is not inserted: a million characters would only slow the page down. @param {ClipboardEvent} event */
  #paste(event) {
    const length = this.content.length + (event.clipboardData?.getData("text/plain").length ?? 0);
    if (length <= this.limit) return;
    event.preventDefault();
    this.#say(gettext("Not pasted: with it the message would have %(count)s characters, and at most %(limit)s can be sent."), length);
  }

  /**
   * @param {string} words of warning; none shows the usual hint
   * @param {number} count
   */
  #say(words, count) {
    const figures = { count: count.toLocaleString(locale), limit: this.limit.toLocaleString(locale) };
    setText(this.hint, words ? format(words, figures) : this.usual);
    this.hint.classList.toggle("over", words !== "");
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (!isPlainEnter(event)) return;
    event.preventDefault();
    this.#submit();
  }

  #submit() {
    if (this.files?.isBusy) this.#say(gettext("The files are still being uploaded. The message can be sent then."), 0);
    if (this.sendButton.disabled) return;
    const content = this.content.trim();
    const files = this.files?.send() ?? [];
    this.content = "";
    this.#keep();
    this.onSend(content, files);
  }

  #keep() {
    clearTimeout(this.timer);
    this.#store(this.content);
  }

  /** @param {string} text */
  #store(text) {
    try {
      if (text) localStorage.setItem(this.draftKey, text);
      else localStorage.removeItem(this.draftKey);
    } catch { /* full or forbidden: the text is still on the page */ }
  }
}

/** Enter that sends: not a new line, not the end of a composition. @param {KeyboardEvent} event */
export const isPlainEnter = (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== IME_KEY_CODE;
