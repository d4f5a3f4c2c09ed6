/* A question of the agent, or of a server that it calls: fields to fill in, or a page to visit, and who wants to know. */

import { ApiError, request } from "#app/api.js";
import { clone, h, one, setText } from "#app/dom.js";
import { format, gettext, moment } from "#app/i18n.js";

/** @typedef {import("#chat/run-state.js").Inquiry} Inquiry */

let made = 0;

export class InquiryCard {
  /**
   * @param {Inquiry} inquiry
   * @param {HTMLElement | undefined} element what the server rendered, if it did
   * @param {(status: string) => void} settled the server took the answer
   */
  constructor(inquiry, element, settled) {
    this.inquiry = inquiry;
    this.settled = settled;
    this.element = element ?? clone("inquiry-template");
    this.element.dataset.inquiry = inquiry.id;
    setText(one("[data-text]", this.element), inquiry.text);
    const source = one("[data-source]", this.element);
    setText(source, inquiry.source ? format(gettext("Asked by %(tool)s. Do not enter passwords."), { tool: inquiry.source }) : "");
    source.hidden = !inquiry.source;
    const link = /** @type {HTMLAnchorElement} */ (one("[data-url]", this.element));
    link.hidden = !inquiry.url;
    if (inquiry.url.startsWith("https://")) Object.assign(link, { href: inquiry.url, textContent: inquiry.url });
    setText(one("[data-expiry]", this.element), format(gettext("Open until %(time)s"), { time: moment(inquiry.expires) }));
    this.form = /** @type {HTMLFormElement} */ (one("[data-form]", this.element));
    this.fields = Object.entries(inquiry.fields.properties ?? {}).map(([name, field]) => makeField(name, field, (inquiry.fields.required ?? []).includes(name)));
    one("[data-fields]", this.element).replaceChildren(...this.fields.map((field) => field.row));
    if (this.fields.length === 0) setText(one("[data-accept]", this.element), inquiry.url ? gettext("Done") : gettext("Yes"));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#answer("accept");
    });
    one("[data-decline]", this.element).addEventListener("click", () => this.#answer("decline"));
  }

  /** @param {"accept" | "decline"} action */
  async #answer(action) {
    const problem = one("[data-problem]", this.element);
    problem.hidden = true;
    const value = action === "accept" ? Object.fromEntries(this.fields.map((f) => [f.name, f.read()]).filter(([, v]) => v !== undefined)) : {};
    this.#busy(true);
    try {
      const row = await answer(this.inquiry, action, value);
      this.settled(row.state);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#busy(error.code === "nothing_to_answer" || error.code === "not_found");
      problem.hidden = false;
      setText(problem, error.message);
    }
  }

  /** @param {boolean} busy */
  #busy(busy) {
    this.element.setAttribute("aria-busy", String(busy));
    for (const button of this.element.querySelectorAll("button")) button.disabled = busy;
  }
}

/**
 * @param {Inquiry} inquiry
 * @param {"accept" | "decline" | "withdraw"} action
 * @param {object} [value]
 */
export function answer(inquiry, action, value = {}) {
  return request("POST", `/runs/${inquiry.run}/answer`, { request: inquiry.id, action, value });
}

/**
 * @param {string} name
 * @param {any} field a plain JSON Schema
 * @param {boolean} required
 * @returns {{name: string, row: HTMLElement, read: () => any}}
 */
function makeField(name, field, required) {
  const id = `inquiry-${++made}`;
  const words = field.title || (name === "answer" ? gettext("Your answer") : name);
  const hint = field.description ? h("p", { class: "field-hint", id: `${id}-hint` }, field.description) : "";
  const common = { id, ...(required ? { required: "" } : {}), ...(hint ? { "aria-describedby": `${id}-hint` } : {}) };
  const label = h("label", { for: id }, words);
  if (field.type === "boolean") {
    const box = /** @type {HTMLInputElement} */ (h("input", { id, type: "checkbox" }));
    box.checked = field.default === true;
    return { name, row: h("div", { class: "check" }, box, label), read: () => box.checked };
  }
  const choices = choicesOf(field);
  if (choices) {
    const many = field.type === "array";
    const select = /** @type {HTMLSelectElement} */ (h("select", { ...common, class: "input", ...(many ? { multiple: "" } : {}) },
      ...(many || required ? [] : [h("option", { value: "" }, "–")]), ...choices.map(([value, title]) => h("option", { value }, title))));
    if (typeof field.default === "string") select.value = field.default;
    const read = () => (many ? [...select.selectedOptions].map((o) => o.value) : select.value || undefined);
    return { name, row: h("div", { class: "field" }, label, select, hint), read };
  }
  return textField(name, field, common, label, hint);
}

/** @param {any} field @returns {[string, string][] | null} values and their words */
function choicesOf(field) {
  const from = field.type === "array" ? (field.items ?? {}) : field;
  const titled = from.oneOf ?? from.anyOf;
  if (titled) return titled.map((/** @type {any} */ one) => [String(one.const), one.title ?? String(one.const)]);
  if (from.enum) return from.enum.map((/** @type {any} */ value, /** @type {number} */ n) => [String(value), from.enumNames?.[n] ?? String(value)]);
  return null;
}

/** @param {string} name @param {any} field @param {any} common @param {HTMLElement} label @param {HTMLElement | string} hint */
function textField(name, field, common, label, hint) {
  const number = field.type === "number" || field.type === "integer";
  const type = number ? "number" : ({ email: "email", uri: "url", date: "date" }[/** @type {"email"} */ (field.format)] ?? "text");
  const examples = Array.isArray(field.examples) ? field.examples.filter((/** @type {any} */ e) => typeof e === "string").slice(0, 10) : [];
  const long = type === "text" && examples.length === 0 && !field.maxLength;
  const input = /** @type {HTMLInputElement} */ (h(long ? "textarea" : "input", { ...common, class: "input", autocomplete: "off", ...(long ? { rows: "2" } : { type }), ...(number ? { step: field.type === "integer" ? "1" : "any" } : {}) }));
  if (field.default !== undefined) input.value = String(field.default);
  const picks = h("div", { class: "inquiry-choices" }, ...examples.map((/** @type {string} */ text) => {
    const pick = h("button", { class: "button button-small", type: "button" }, text);
    pick.addEventListener("click", () => { input.value = text; input.focus(); });
    return pick;
  }));
  const read = () => (input.value === "" ? undefined : number ? Number(input.value) : input.value);
  return { name, row: h("div", { class: "field" }, label, ...(examples.length ? [picks] : []), input, hint), read };
}
