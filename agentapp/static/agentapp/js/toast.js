/* One short message at the foot of the page. */

import { one, setText } from "#app/dom.js";

const SHOWN_MS = 5000;
let timer = 0;

/** @param {string} text @param {{stays?: boolean}} [how] one that stays waits for the next one */
export function toast(text, { stays = false } = {}) {
  const box = one("#toast");
  setText(box, text);
  if (!box.matches(":popover-open")) box.showPopover();
  clearTimeout(timer);
  if (!stays) timer = setTimeout(() => box.hidePopover(), SHOWN_MS);
}
