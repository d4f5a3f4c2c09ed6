/* Arguments and results of tools, shown by their shape: table, named values, JSON, text. */

import { h } from "#app/dom.js";
import { format, gettext, ngettext } from "#app/i18n.js";

const SHOWN_ROWS = 50;

/**
 * @param {any} value
 * @returns {HTMLElement}
 */
export function showValue(value) {
  const parsed = typeof value === "string" ? parse(value) : value;
  const frame = h("div", { class: "value", tabindex: "0" });
  if (isTable(parsed)) {
    frame.setAttribute("role", "region"); // what can be scrolled by keyboard has to have a name
    frame.append(...table(parsed));
    frame.setAttribute("aria-label", frame.querySelector("caption")?.textContent ?? "");
  }
  else if (isPlainObject(parsed) && Object.keys(parsed).length > 0) frame.append(named(parsed));
  else frame.append(h("pre", {}, typeof parsed === "string" ? seen(parsed) : JSON.stringify(parsed, null, 2)));
  return frame;
}

/* What turns text around or hides it, spelled out: nobody is to approve other words than those that are sent. */
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** @param {string} text */
const seen = (text) => text.replace(UNSEEN, (letter) => `⟨U+${letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** The arguments in a few words, for a step's line. @param {any} args */
export function gist(args) {
  if (!isPlainObject(args)) return "";
  return Object.values(args).map((v) => (typeof v === "string" ? v : JSON.stringify(v))).join(", ").replace(/\s+/g, " ").replace(UNSEEN, "").slice(0, 160);
}

/** JSON, or rows of a table with " | " between the cells; other text stays text. @param {string} text */
function parse(text) {
  const start = text.trimStart()[0];
  if (start === "{" || start === "[") {
    try { return JSON.parse(text); } catch { return text; }
  }
  if (/^\| .* \|\n\|[ |:-]+\|(\n|$)/.test(text)) return markdownTable(text);
  const [columns, ...rows] = text.trim().split("\n").map((line) => line.split(" | "));
  const even = columns.length > 1 && rows.length > 0 && rows.every((row) => row.length === columns.length);
  return even ? { columns, rows } : text;
}

/** @param {any} value */
const isPlainObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Rows, or `{columns, rows}` as databases answer. @param {any} value */
function isTable(value) {
  if (isPlainObject(value)) return Array.isArray(value.columns) && Array.isArray(value.rows);
  return Array.isArray(value) && value.length > 0 && value.every(isPlainObject);
}

/** @param {any} value */
function table(value) {
  /** @type {string[]} */
  const columns = value.columns ?? [...new Set(value.flatMap((/** @type {any} */ row) => Object.keys(row)))];
  /** @type {any[]} */
  const rows = value.rows ?? value;
  const cells = rows.slice(0, SHOWN_ROWS).map((row) => columns.map((name, n) => (Array.isArray(row) ? row[n] : row[name])));
  const kinds = columns.map((_, n) => (cells.every((row) => isNumber(row[n])) ? "number" : ""));
  const head = h("tr", {}, ...columns.map((name, n) => h("th", { scope: "col", class: kinds[n] }, seen(String(name)))));
  const body = cells.map((row) => h("tr", {}, ...row.map((value, n) => h("td", { class: kinds[n] }, text(value)))));
  const caption = h("caption", { class: "visually-hidden" }, ngettext("Table with %(count)s row", "Table with %(count)s rows", rows.length));
  const parts = [h("table", {}, caption, h("thead", {}, head), h("tbody", {}, ...body))];
  const left = rows.length - SHOWN_ROWS;
  if (left > 0) parts.push(h("p", { class: "note" }, format(gettext("%(count)s more rows"), { count: left })));
  return parts;
}

/** @param {any} value */
const isNumber = (value) => value !== "" && value !== null && !Number.isNaN(Number(value));

/** @param {any} object */
const named = (object) =>
  h("dl", {}, ...Object.entries(object).flatMap(([key, value]) => [h("dt", {}, seen(key)), h("dd", {}, nested(value))]));

/** What is in a value stands below its name, as deep as it goes. @param {any} value @returns {Node | string} */
function nested(value) {
  if (isPlainObject(value) && Object.keys(value).length > 0) return named(value);
  if (Array.isArray(value) && value.length > 0) return h("ul", {}, ...value.map((item) => h("li", {}, nested(item))));
  return text(value);
}

/** @param {any} value */
const text = (value) => (value === null || value === undefined ? "–" : seen(typeof value === "object" ? JSON.stringify(value) : String(value)));

/** A table as Markdown has it, with what stands below it. @param {string} text */
function markdownTable(text) {
  const [head, , ...lines] = text.split("\n\n")[0].split("\n");
  const cells = (/** @type {string} */ line) => line.slice(2, -2).split(/ (?<!\\)\| /).map((cell) => cell.replaceAll("\\|", "|"));
  return { columns: cells(head), rows: lines.map(cells) };
}
