/* How the next question is worked on: the agent's own way, or one that the person picks. */

import { one, setText } from "#app/dom.js";

const KEY = "mode";

export class ModePicker {
  constructor() {
    this.menu = one("#mode-menu");
    this.label = one("[data-mode-label]");
    this.choices = [.../** @type {NodeListOf<HTMLInputElement>} */ (this.menu.querySelectorAll("input[name=mode]"))];
    this.usual = this.choices.find((choice) => choice.checked)?.value ?? "";
    this.#restore();
    this.menu.addEventListener("change", () => this.#changed());
    this.menu.addEventListener("click", (event) => {
      // A click with the mouse decides; with the keyboard one looks around, and Enter or Escape closes.
      if (event.detail > 0 && event.target instanceof HTMLInputElement) this.menu.hidePopover();
    });
    this.menu.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // it would press the button that has the focus then
      this.menu.hidePopover();
    });
    this.menu.addEventListener("toggle", (event) => {
      if (/** @type {ToggleEvent} */ (event).newState === "open") this.#chosen?.focus();
    });
  }

  /** What a message says about it; nothing where it is the agent's own way. */
  get value() {
    const value = this.#chosen?.value ?? "";
    return value === this.usual ? "" : value;
  }

  get #chosen() {
    return this.choices.find((choice) => choice.checked);
  }

  #changed() {
    setText(this.label, this.#chosen?.dataset.label ?? "");
    try {
      if (this.value) sessionStorage.setItem(KEY, this.value);
      else sessionStorage.removeItem(KEY);
    } catch { /* forbidden: it holds for this page */ }
  }

  /** For the next page of this tab. */
  #restore() {
    let kept = null;
    try {
      kept = sessionStorage.getItem(KEY);
    } catch { /* forbidden */ }
    const choice = this.choices.find((one) => one.value === kept);
    if (choice) choice.checked = true;
    setText(this.label, this.#chosen?.dataset.label ?? "");
  }
}
