/* Brings an exported conversation back, and shows it. */

import { ApiError, upload } from "#app/api.js";
import { one } from "#app/dom.js";
import { format, gettext, percent } from "#app/i18n.js";
import { toast } from "#app/toast.js";

export function startImport() {
  const input = /** @type {HTMLInputElement} */ (one("[data-import-file]"));
  one("[data-import]").addEventListener("click", () => {
    one("#account-menu").hidePopover();
    input.click();
  });
  input.addEventListener("change", async () => {
    const [file] = input.files ?? [];
    input.value = ""; // the same one can be chosen again
    if (!file) return;
    try {
      progress(0);
      const made = await upload("/conversations/import/file", file, progress, new AbortController().signal);
      location.assign(`/c/${made.id}/`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      toast(error.message);
    }
  });
}

/** @param {number} share */
function progress(share) {
  const words = share < 1 ? format(gettext("Importing: %(share)s"), { share: percent(share) }) : gettext("Importing: the files are checked …");
  toast(words, { stays: true });
}
