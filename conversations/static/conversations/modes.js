/* The names of the ways in which an agent works, in the page's language. */

/** @param {string} mode @returns {string} */
export function modeName(mode) {
  const choice = document.querySelector(`#mode-menu input[value="${CSS.escape(mode)}"]`);
  return choice instanceof HTMLInputElement ? (choice.dataset.label ?? "") : "";
}
