/* Marks that a reader puts on messages: pinned ones stay in the agent's context, answers are judged. */

import { ApiError, request } from "#app/api.js";
import { one } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { toast } from "#app/toast.js";

/** The pin button of a question or an answer. @param {HTMLElement} element with `data-message` */
export function startPin(element) {
  const button = one("[data-pin]", element);
  const show = (/** @type {boolean} */ pinned) => {
    press(button, pinned);
    one(".pinned-mark", element).hidden = !pinned;
  };
  button.addEventListener("click", async () => {
    const pinned = !isPressed(button);
    show(pinned);
    if (await change(element, { pinned })) toast(pinned ? gettext("Pinned: the agent keeps this message in mind") : gettext("Unpinned"));
    else show(!pinned);
  });
}

/** The two thumbs of an answer; pressing one again takes the judgement back. @param {HTMLElement} element with `data-message` */
export function startFeedback(element) {
  const buttons = /** @type {HTMLElement[]} */ ([...element.querySelectorAll("[data-feedback]")]);
  const show = (/** @type {string} */ value) => buttons.forEach((button) => press(button, button.dataset.feedback === value));
  for (const button of buttons) {
    button.addEventListener("click", async () => {
      const was = buttons.find(isPressed)?.dataset.feedback ?? "";
      const feedback = button.dataset.feedback === was ? "" : (button.dataset.feedback ?? "");
      show(feedback);
      if (!(await change(element, { feedback }))) show(was);
    });
  }
}

/** @param {HTMLElement} button */
const isPressed = (button) => button.getAttribute("aria-pressed") === "true";

/** @param {HTMLElement} button @param {boolean} pressed */
const press = (button, pressed) => button.setAttribute("aria-pressed", String(pressed));

/** @type {Promise<unknown>} */
let before = Promise.resolve();

/**
 * In the order in which they were pressed: the last one counts.
 * @param {HTMLElement} element
 * @param {object} changes
 * @returns {Promise<boolean>} whether the server took it
 */
function change(element, changes) {
  const taken = before.then(() => send(element, changes));
  before = taken.catch(() => false);
  return taken;
}

/** @param {HTMLElement} element @param {object} changes @returns {Promise<boolean>} */
async function send(element, changes) {
  try {
    await request("PATCH", `/messages/${element.dataset.message}`, changes);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    toast(error.message);
    return false;
  }
}
