/* The page of a run: its answer is shown as in the chat. */

import "#chat/shell.js";
import { renderInto } from "#chat/render.js";

for (const answer of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".answer.plain"))) {
  renderInto(answer, answer.textContent ?? "");
}
