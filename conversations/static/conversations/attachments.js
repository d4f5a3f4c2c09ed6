/* Files that go out with the next message: chosen, dropped or pasted, uploaded at once, kept with the draft. */

import { ApiError, request, upload } from "#app/api.js";
import { h, icon, one, setText } from "#app/dom.js";
import { format, gettext, ngettext } from "#app/i18n.js";
import { bytes, describe } from "#chat/file-list.js";
import { shown } from "#chat/shell.js";
import { startTaking } from "#chat/taking-files.js";

/** @typedef {import("#chat/file-list.js").Attached} Attached */
/** @typedef {{name: string, size: number, file: File | null, sent: Attached | null, problem: string, canRetry: boolean, stop: AbortController, chip: HTMLElement}} Item */

const AWAY = new Set(["unreachable", "unavailable", "502", "503", "504"]);

export class Attachments {
  /**
   * @param {{form: HTMLElement, draftKey: string, maxBytes: number, maxFiles: number, changed: () => void, say: (words: string) => void}} options
   */
  constructor({ form, draftKey, maxBytes, maxFiles, changed, say }) {
    this.list = one("[data-attachments]", form);
    this.maxBytes = maxBytes;
    this.maxFiles = maxFiles;
    this.changed = changed;
    this.say = say;
    this.draftKey = draftKey;
    /** @type {Item[]} */
    this.items = [];
    startTaking(form, (files) => this.take(files));
    this.#restore();
  }

  get isEmpty() {
    return this.items.length === 0;
  }

  /** Whether something is still on its way to the server. */
  get isBusy() {
    return this.items.some((item) => !item.sent && !item.problem);
  }

  /** What can be sent. @returns {Attached[]} */
  get ready() {
    return this.items.flatMap((item) => (item.sent ? [item.sent] : []));
  }

  /** @param {File[]} files */
  take(files) {
    const room = this.maxFiles - this.items.length;
    if (files.length > room) this.say(format(gettext("A message takes %(count)s files. The others were not added."), { count: this.maxFiles }));
    for (const file of files.slice(0, Math.max(0, room))) {
      const item = this.#add(file.name, file.size, file);
      if (file.size > this.maxBytes) this.#fail(item, format(gettext("Too large: at most %(size)s"), { size: bytes(this.maxBytes) }));
      else if (file.size === 0) this.#fail(item, gettext("The file is empty"));
      else this.#upload(item);
    }
  }

  /** Files that are on the server already. @param {Attached[]} files */
  giveBack(files) {
    for (const file of files) if (!this.items.some((item) => item.sent?.id === file.id)) this.#show(this.#add(file.filename, file.size, null), file);
    this.#changed();
  }

  /** What goes out now; what could not be uploaded stays. @returns {Attached[]} */
  send() {
    const files = this.ready;
    for (const item of this.items.filter((item) => item.sent)) item.chip.remove();
    this.items = this.items.filter((item) => !item.sent);
    this.#changed();
    return files;
  }

  /** A worker has read one of them, or could not. @param {{id: string, problem: string}} told */
  read({ id, problem }) {
    const item = this.items.find((item) => item.sent?.id === id);
    if (!item || !problem) return;
    item.problem = problem;
    this.#draw(item);
  }

  /** @param {string} key */
  moveDraft(key) {
    this.#store([]);
    this.draftKey = key;
    this.#store(this.ready);
  }

  /** @param {string} name @param {number} size @param {File | null} file @returns {Item} */
  #add(name, size, file) {
    const chip = h("li", { class: "chip" });
    const item = { name, size, file, sent: null, problem: "", canRetry: false, stop: new AbortController(), chip };
    this.items.push(item);
    this.list.append(chip);
    this.#draw(item);
    this.#changed();
    return item;
  }

  /** @param {Item} item */
  async #upload(item) {
    Object.assign(item, { problem: "", canRetry: false });
    this.#draw(item);
    this.#changed();
    try {
      const sent = await upload("/attachments", /** @type {File} */ (item.file), (share) => this.#progress(item, share), item.stop.signal);
      if (!this.items.includes(item)) return this.#forget(sent);
      this.#show(item, sent);
      if (sent.problem) this.read(sent);
    } catch (error) {
      if (item.stop.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      item.canRetry = AWAY.has(error.code);
      this.#fail(item, error.message);
    }
  }

  /** @param {Item} item @param {Attached} sent */
  #show(item, sent) {
    const { id, filename, content_type, size } = sent;
    item.sent = { id, filename, content_type, size };
    item.file = null;
    this.#draw(item);
    this.#changed();
  }

  /** @param {Item} item @param {string} problem */
  #fail(item, problem) {
    item.problem = problem;
    this.#draw(item);
    this.#changed();
    this.#announce(format(gettext("%(name)s: %(problem)s"), { name: item.name, problem }));
  }

  /** @param {Item} item */
  #remove(item) {
    item.stop.abort();
    const place = this.items.indexOf(item);
    this.items = this.items.filter((other) => other !== item);
    item.chip.remove();
    if (item.sent) this.#forget(item.sent);
    this.#changed();
    this.#announce(format(gettext("Removed: %(name)s"), { name: item.name }));
    const next = this.items[Math.min(place, this.items.length - 1)];
    one(next ? "[data-remove]" : "[data-attach]", next?.chip ?? this.list.closest("form") ?? document).focus();
  }

  /** One that belongs to a message stays with it; the server knows. @param {{id: string}} sent */
  async #forget({ id }) {
    try {
      await request("DELETE", `/attachments/${id}`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error; // it goes by itself after a while
    }
  }

  /** @param {Item} item @param {number} share of the bytes that are there */
  #progress({ chip }, share) {
    const bar = chip.querySelector("progress");
    if (bar) bar.value = share;
  }

  /** @param {Item} item */
  #draw(item) {
    const { chip, name, size, sent, problem } = item;
    chip.dataset.state = problem ? (sent ? "unread" : "failed") : sent ? "ready" : "sending";
    const about = problem || (sent ? bytes(sent.size) : format(gettext("Uploading, %(size)s"), { size: bytes(size) }));
    const remove = h("button", { class: "icon-button", type: "button", "data-remove": true, "aria-label": format(gettext("Remove %(name)s"), { name }), title: gettext("Remove") }, icon("x"));
    remove.addEventListener("click", () => this.#remove(item));
    const retry = h("button", { class: "text-button", type: "button", hidden: !item.canRetry }, gettext("Try again"));
    retry.addEventListener("click", () => this.#upload(item));
    chip.replaceChildren(describe(sent ?? { id: "", filename: name, content_type: "", size }),
      h("span", { class: "chip-text" }, h("span", { class: "chip-name", title: name }, name), h("span", { class: "chip-about" }, about)), retry, remove);
    if (chip.dataset.state === "sending") chip.append(h("progress", { class: "progress", max: "1", value: "0", "aria-label": format(gettext("Uploading %(name)s"), { name }) }));
  }

  #changed() {
    this.list.hidden = this.isEmpty;
    this.#store(this.ready);
    this.changed();
  }

  /** @param {string} words */
  #announce(words) {
    setText(one("#announcer"), words);
  }

  /** @param {Attached[]} files */
  #store(files) {
    try {
      if (files.length > 0) localStorage.setItem(`${this.draftKey}:files`, JSON.stringify(files));
      else localStorage.removeItem(`${this.draftKey}:files`);
    } catch { /* full or forbidden: they are still on the page */ }
  }

  /** Those of the draft that the server still keeps for a message. */
  async #restore() {
    /** @type {Attached[]} */
    let kept = [];
    try {
      kept = JSON.parse(localStorage.getItem(`${this.draftKey}:files`) ?? "[]");
    } catch { /* nothing is kept here */ }
    if (kept.length === 0) return;
    this.giveBack(kept);
    try {
      const asked = kept.map((file) => `ids=${file.id}`).join("&");
      const known = (await request("GET", `/attachments?limit=${this.maxFiles}&${asked}`)).items.filter((/** @type {any} */ file) => [null, shown.conversation].includes(file.conversation));
      const gone = this.items.filter((item) => kept.some((file) => file.id === item.sent?.id) && !known.some((/** @type {any} */ file) => file.id === item.sent?.id));
      for (const item of gone) item.chip.remove();
      this.items = this.items.filter((item) => !gone.includes(item));
      for (const file of known) this.read(file);
      if (gone.length > 0) this.say(ngettext("A file of this draft is gone or was sent; add it again if you need it.", "%(count)s files of this draft are gone or were sent; add them again if you need them.", gone.length));
      this.#changed();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }
}
