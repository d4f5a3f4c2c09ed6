/* Files that tools made: pictures are shown, texts can be looked at in a locked frame, everything can be downloaded. */

import { h, icon } from "#app/dom.js";
import { format, gettext } from "#app/i18n.js";
import { bytes, PICTURES } from "#chat/file-list.js";

/** @typedef {import("#chat/run-state.js").Run} Run @typedef {import("#chat/run-state.js").ToolFile} ToolFile */

export class Files {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.shown = new Set();
  }

  /** @param {Run} run */
  update(run) {
    for (const file of run.steps.flatMap((step) => step.files)) {
      if (!file.id || this.shown.has(file.id)) continue;
      this.shown.add(file.id);
      this.root.append(card(file, `/artifacts/${file.id}/`));
    }
    this.root.hidden = this.shown.size === 0;
  }
}

/** @param {ToolFile} file @param {string} url */
function card(file, url) {
  const download = h("a", { class: "file-name", href: url, download: file.filename }, icon("download"), h("span", {}, file.filename), h("span", { class: "file-size" }, bytes(file.size)));
  if (PICTURES.has(file.content_type)) return h("figure", { class: "file" }, h("img", { src: url, alt: file.filename, loading: "lazy" }), download);
  if (!file.content_type.startsWith("text/")) return h("div", { class: "file" }, h("p", { class: "file-line" }, download));
  const look = h("button", { class: "button button-small", type: "button", "aria-expanded": "false" }, gettext("Preview"));
  const box = h("div", { class: "file" }, h("p", { class: "file-line" }, download, look));
  look.addEventListener("click", () => {
    const frame = box.querySelector("iframe");
    if (frame) frame.remove();
    else box.append(h("iframe", { src: `${url}?preview`, sandbox: "", title: format(gettext("Preview of %(name)s"), { name: file.filename }), referrerpolicy: "no-referrer" }));
    look.setAttribute("aria-expanded", String(!frame));
  });
  return box;
}
