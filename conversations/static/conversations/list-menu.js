/* What can be done with a conversation: rename, pin, archive, export, delete. */

import { ApiError, request } from "#app/api.js";
import { one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { openMenu } from "#app/menu.js";
import { toast } from "#app/toast.js";

/** @typedef {import("#chat/list.js").ConversationList} ConversationList */

/**
 * @param {ConversationList} list
 * @param {{current: () => string | null, renamed: (title: string) => void}} page
 */
export function startConversationMenu(list, page) {
  const menu = one("#conversation-menu");
  let id = "";

  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-conversation-menu]");
    if (!(button instanceof HTMLElement)) return;
    id = "current" in button.dataset ? (page.current() ?? "") : (button.closest("li")?.dataset.conversation ?? "");
    const pinned = "pinned" in (list.item(id)?.dataset ?? {});
    one("[data-action=pin]", menu).hidden = pinned;
    one("[data-action=unpin]", menu).hidden = !pinned;
    one("[data-action=archive]", menu).hidden = list.showsArchived;
    one("[data-action=unarchive]", menu).hidden = !list.showsArchived;
    one("[data-action=export]", menu).setAttribute("href", `/api/v1/conversations/${id}/export?format=zip`);
    openMenu(menu, button);
  });

  menu.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-action]");
    if (!button) return;
    menu.hidePopover();
    actions[button.getAttribute("data-action") ?? ""]();
  });

  /** @param {object} changes @param {string} [words] */
  async function change(changes, words) {
    try {
      await request("PATCH", `/conversations/${id}`, changes);
      list.conversation({ id, ...changes });
      if (words) toast(words);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      toast(error.message);
      return false;
    }
  }

  /** @type {Object<string, () => void>} */
  const actions = {
    pin: () => change({ pinned: true }),
    unpin: () => change({ pinned: false }),
    archive: () => change({ archived: true }, gettext("Archived. You find it under your name, “Archived conversations”.")),
    unarchive: () => change({ archived: false }, gettext("Back in the list.")),
    export: () => {}, // a link: the browser saves it
    rename: () => {
      const dialog = openDialog("#rename-dialog", async () => {
        const title = input.value.trim();
        if (title && (await change({ title })) && id === page.current()) page.renamed(title);
      });
      const input = /** @type {HTMLInputElement} */ (one("input", dialog));
      input.value = titleOf(list, id);
      input.select();
    },
    delete: () => {
      const dialog = openDialog("#delete-dialog", async () => {
        try {
          await request("DELETE", `/conversations/${id}`);
          list.conversation({ id, deleted: true });
          if (id === page.current()) location.assign("/");
          else toast(gettext("Deleted"));
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          toast(error.message);
        }
      });
      setText(one("[data-title]", dialog), titleOf(list, id));
    },
  };
}

/**
 * @param {ConversationList} list
 * @param {string} id
 */
function titleOf(list, id) {
  const item = list.item(id);
  return (item ? one(".title", item) : one("h1")).textContent ?? "";
}

/**
 * @param {string} selector
 * @param {() => void} confirmed
 */
function openDialog(selector, confirmed) {
  const dialog = /** @type {HTMLDialogElement} */ (one(selector));
  const form = one("form", dialog);
  form.onsubmit = () => confirmed();
  one("[data-close]", dialog).onclick = () => dialog.close();
  dialog.showModal();
  return dialog;
}
