/* The ways in which files come to the composer: the paper clip, dropping them on the page, pasting. */

import { one } from "#app/dom.js";

/**
 * @param {HTMLElement} form the composer
 * @param {(files: File[]) => void} take
 */
export function startTaking(form, take) {
  const input = /** @type {HTMLInputElement} */ (one("[data-file-input]", form));
  one("[data-attach]", form).addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    take([...(input.files ?? [])]);
    input.value = ""; // the same file can be chosen again
    one("textarea", form).focus();
  });
  one("textarea", form).addEventListener("paste", (event) => {
    const { clipboardData: data } = /** @type {ClipboardEvent} */ (event);
    if (!data || data.files.length === 0 || data.getData("text/plain")) return; // office programs add a picture of what is text
    event.preventDefault();
    take([...data.files]);
  });
  startDropping(form, take);
}

/** @param {HTMLElement} form @param {(files: File[]) => void} take */
function startDropping(form, take) {
  let depth = 0; // the page's elements are entered before their parents are left
  const show = (/** @type {number} */ by) => {
    depth = Math.max(0, depth + by);
    form.toggleAttribute("data-dropping", depth > 0);
  };
  const withFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => withFiles(event) && show(1));
  document.addEventListener("dragleave", (event) => withFiles(event) && show(-1));
  document.addEventListener("dragover", (event) => withFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!withFiles(event)) return;
    event.preventDefault();
    show(-depth);
    // Folders come as entries that are no files.
    const items = [...(event.dataTransfer?.items ?? [])].filter((item) => !item.webkitGetAsEntry?.()?.isDirectory);
    take(items.map((item) => item.getAsFile()).filter((file) => file !== null));
  });
}
