/* The arguments of a call as fields: text as text, yes or no as a choice, everything else as JSON. */

import { h, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";

/** @typedef {{name: string, value: any, input: HTMLTextAreaElement | HTMLInputElement, problem: HTMLElement}} Field */

let made = 0;

export class ArgumentForm {
  /**
   * @param {HTMLFormElement} form
   * @param {Object<string, any>} args
   */
  constructor(form, args) {
    /** @type {Field[]} */
    this.fields = Object.entries(args ?? {}).map(([name, value]) => makeField(name, value));
    form.replaceChildren(...this.fields.map(row));
  }

  focus() {
    this.fields[0]?.input.focus();
  }

  /** @returns {Object<string, any> | null} null when a field cannot be read; the field says why */
  read() {
    /** @type {Object<string, any>} */
    const args = {};
    let wrong = null;
    for (const field of this.fields) {
      try {
        args[field.name] = readField(field);
        mark(field, "");
      } catch {
        mark(field, gettext("This is not valid JSON. Texts in it need quotation marks."));
        wrong ??= field;
      }
    }
    wrong?.input.focus();
    return wrong ? null : args;
  }
}

/**
 * @param {string} name
 * @param {any} value
 * @returns {Field}
 */
function makeField(name, value) {
  const id = `argument-${++made}`;
  const problem = h("span", { class: "field-error", id: `${id}-problem`, hidden: true });
  const common = { id, "aria-describedby": problem.id };
  if (typeof value === "boolean") {
    const box = /** @type {HTMLInputElement} */ (h("input", { ...common, type: "checkbox" }));
    box.checked = value;
    return { name, value, input: box, problem };
  }
  const area = /** @type {HTMLTextAreaElement} */ (h("textarea", { ...common, rows: "1", spellcheck: typeof value === "string" ? "true" : "false" }));
  area.value = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return { name, value, input: area, problem };
}

/** @param {Field} field */
function row({ name, value, input, problem }) {
  const label = h("label", { for: input.id }, name);
  if (typeof value === "boolean") return h("div", { class: "check" }, input, label);
  return h("div", { class: "field" }, label, input, problem);
}

/** @param {Field} field */
function readField({ value, input }) {
  if (input instanceof HTMLInputElement) return input.checked;
  return typeof value === "string" ? input.value : JSON.parse(input.value);
}

/**
 * @param {Field} field
 * @param {string} words
 */
function mark({ input, problem }, words) {
  input.setAttribute("aria-invalid", String(words !== ""));
  problem.hidden = !words;
  setText(problem, words);
}
