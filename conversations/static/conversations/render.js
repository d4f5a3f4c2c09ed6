/* Model text → HTML: the only place. Markdown, then the sanitiser; live text and history alike. */

import { Marked } from "marked";
import DOMPurify from "dompurify";
import { copyText, h, icon } from "#app/dom.js";
import { gettext } from "#app/i18n.js";

const LONGEST_RENDERED = 200_000; // beyond it plain text, so that the page stays quick

const marked = new Marked({
  gfm: true,
  breaks: false,
  async: false,
  renderer: {
    // Tags in an answer are something to read, not something to run. A line break in a table cell is the exception.
    html({ text }) {
      return /^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escape(text);
    },
    // Pictures of other sites would tell them who reads what: they become links.
    image({ href, text }) {
      return `<a href="${escape(href)}">${escape(text || href)}</a>`;
    },
  },
});

/** @param {string} text */
const escape = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const PLAIN_ATTRIBUTES = ["align", "checked", "class", "disabled", "start", "title", "type"];

const SANITISER = {
  ALLOWED_TAGS: "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr input li ol p pre strong table tbody td th thead tr ul".split(" "),
  ALLOWED_ATTR: [...PLAIN_ATTRIBUTES, "href"],
  ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|\/knowledge\/passages\/\d+\/$)/i, // of our own pages only what answers cite
  RETURN_DOM_FRAGMENT: true,
};

/**
 * Shows text as Markdown. Called again with more text it changes only the blocks that differ, so that what somebody
 * selects or reads stays in place; the result is always that of the whole text.
 * @param {HTMLElement} target
 * @param {string} text
 */
export function renderInto(target, text) {
  if (text.length > LONGEST_RENDERED) {
    target.classList.add("plain");
    target.textContent = text;
    return;
  }
  if (target.classList.contains("plain")) {
    target.classList.remove("plain");
    target.replaceChildren();
  }
  const blocks = marked.lexer(text).filter((token) => token.type !== "space" && token.type !== "def").map((token) => marked.parser([token]));
  /** @type {string[]} */
  const shown = sources.get(target) ?? [];
  let same = 0;
  while (same < blocks.length && blocks[same] === shown[same] && same < target.children.length) same += 1;
  while (target.children.length > same) target.lastElementChild?.remove();
  for (const block of blocks.slice(same)) target.append(build(block));
  sources.set(target, blocks);
}

/** @type {WeakMap<HTMLElement, string[]>} */
const sources = new WeakMap();

/**
 * One block as exactly one element.
 * @param {string} html
 */
function build(html) {
  const fragment = /** @type {DocumentFragment} */ (/** @type {unknown} */ (DOMPurify.sanitize(html.trim(), SANITISER)));
  for (const link of fragment.querySelectorAll("a[href]")) {
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer nofollow");
  }
  for (const pre of fragment.querySelectorAll("pre")) pre.replaceWith(codeBlock(pre));
  for (const table of fragment.querySelectorAll("table")) {
    const frame = h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": gettext("Table") });
    table.replaceWith(frame);
    frame.append(table);
  }
  const only = fragment.firstElementChild;
  return fragment.childNodes.length === 1 && only ? only : h("p", {}, fragment);
}

const CALM_MS = 200; // code that still grows is coloured once it has come to rest
const LONGEST_COLOURED = 30_000;
const COLOURED = { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true };

/**
 * Colours code in a language that the highlighter knows; it is loaded when the first such code is there.
 * @param {HTMLElement} code
 * @param {string} language
 */
function colourLater(code, language) {
  const text = code.textContent ?? "";
  if (!language || text.length > LONGEST_COLOURED) return;
  setTimeout(async () => {
    if (!code.isConnected) return; // replaced by what came since
    // @ts-expect-error it brings no types
    const { default: highlighter } = await import("@highlightjs/cdn-assets/es/highlight.min.js");
    if (!highlighter.getLanguage(language)) return;
    const { value } = highlighter.highlight(text, { language, ignoreIllegals: true });
    code.replaceChildren(/** @type {DocumentFragment} */ (/** @type {unknown} */ (DOMPurify.sanitize(value, COLOURED))));
  }, CALM_MS);
}

/** @param {HTMLElement} pre */
function codeBlock(pre) {
  const language = pre.querySelector("code")?.className.match(/language-([\w+#.-]+)/)?.[1] ?? "";
  const button = h("button", { type: "button" }, icon("copy"), gettext("Copy"));
  button.addEventListener("click", async () => {
    await copyText(pre.textContent ?? "");
    button.replaceChildren(icon("check"), gettext("Copied"));
    setTimeout(() => button.replaceChildren(icon("copy"), gettext("Copy")), 2000);
  });
  const copy = /** @type {HTMLElement} */ (pre.cloneNode(true));
  copy.tabIndex = 0;
  colourLater(copy.querySelector("code") ?? copy, language);
  return h("div", { class: "code-block" }, h("div", { class: "code-head" }, h("span", {}, language || gettext("text")), button), copy);
}
