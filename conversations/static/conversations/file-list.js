/* Files of a message: pictures small, others by name. */

import { h, icon } from "#app/dom.js";
import { locale } from "#app/i18n.js";

/** @typedef {{id: string, filename: string, content_type: string, size: number}} Attached */

/** What the server has drawn anew. */
export const PICTURES = new Set(["image/png", "image/jpeg"]);

/** A picture in small, or a symbol. @param {Attached} file */
export function describe({ id, content_type }) {
  return PICTURES.has(content_type) ? h("img", { class: "thumbnail", src: `/attachments/${id}/`, alt: "" }) : icon("file-text");
}

/** The files that a message shows, as the server renders them too. @param {Element} list @param {Attached[]} files */
export function showFiles(list, files) {
  /** @type {HTMLElement} */ (list).hidden = files.length === 0;
  list.replaceChildren(...files.map(entry));
}

/** What the server rendered. @param {Element} list @returns {Attached[]} */
export function filesOf(list) {
  return [...list.children].map((element) => {
    const { id = "", filename = "", type = "", size = "0" } = /** @type {HTMLElement} */ (element).dataset;
    return { id, filename, content_type: type, size: Number(size) };
  });
}

/** @param {Attached} file */
function entry(file) {
  const { id, filename, content_type: type, size } = file;
  const data = { "data-id": id, "data-filename": filename, "data-type": type, "data-size": String(size) };
  const url = `/attachments/${id}/`;
  if (PICTURES.has(type)) return h("li", data, h("a", { class: "picture", href: url, download: filename, title: filename }, h("img", { src: url, alt: filename, loading: "lazy" })));
  return h("li", data, h("a", { class: "chip", href: url, download: filename }, icon("file-text"),
    h("span", { class: "chip-text" }, h("span", { class: "chip-name", title: filename }, filename), h("span", { class: "chip-about" }, bytes(size)))));
}

/** @param {number} size */
export function bytes(size) {
  const [value, unit] = size < 1000 ? [size, "B"] : size < 1_000_000 ? [Math.round(size / 1000), "kB"] : [Math.round(size / 100_000) / 10, "MB"];
  return `${value.toLocaleString(locale)} ${unit}`;
}
