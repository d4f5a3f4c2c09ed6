/* One short message at the foot of the page. */

import { one, setText } from "#app/dom.js";

const SHOWN_MS = 5000;
let timer = 0;

/** @param {string} text */
export function toast(text) {
  const box = one("#toast");
  setText(box, text);
  if (!box.matches(":popover-open")) box.showPopover();
  clearTimeout(timer);
  timer = setTimeout(() => box.hidePopover(), SHOWN_MS);
}
