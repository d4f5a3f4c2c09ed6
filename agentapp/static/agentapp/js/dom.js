/* Small helpers around the DOM. Text only ever enters as text. */

/**
 * The one element that must be there.
 * @template {Element} [T=HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [root]
 * @returns {T}
 */
export function one(selector, root = document) {
  const found = root.querySelector(selector);
  if (!found) throw new Error(`The page has no ${selector}`);
  return /** @type {T} */ (/** @type {unknown} */ (found));
}

/**
 * @param {string} tag
 * @param {Object<string, string | boolean>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/**
 * An icon of the page's sprite.
 * @param {string} name
 * @param {string} [extra] a further class
 */
export function icon(name, extra = "") {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", `icon ${extra}`.trim());
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/**
 * A fresh copy of what a `<template>` holds.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function clone(id) {
  const template = /** @type {HTMLTemplateElement} */ (one(`#${id}`));
  const copy = template.content.firstElementChild?.cloneNode(true);
  if (!(copy instanceof HTMLElement)) throw new Error(`The template ${id} is empty`);
  return copy;
}

/**
 * Changes text only when it differs, so that selections and screen readers stay undisturbed.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {string} text */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = /** @type {HTMLTextAreaElement} */ (h("textarea", { class: "visually-hidden" })); // plain http elsewhere than on localhost
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
