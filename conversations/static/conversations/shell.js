/* What every page of a signed-in person has: menus and the list of conversations. */

import { one, setText } from "#app/dom.js";
import { startMenus } from "#app/menu.js";
import { ConversationList } from "#chat/list.js";
import { startImport } from "#chat/importing.js";
import { startConversationMenu } from "#chat/list-menu.js";
import { WaitingCount } from "#chat/waiting.js";

/** @type {{conversation: string | null}} what the page shows; the chat changes it when a new conversation gets its id */
export const shown = { conversation: null };

export const list = new ConversationList();

export const waiting = new WaitingCount();

/** @param {string} title */
export function setTitle(title) {
  const heading = document.querySelector("[data-page-title]");
  if (!heading) return;
  setText(heading, title);
  document.title = `${title} · agentapp`;
}

startMenus();
startConversationMenu(list, { current: () => shown.conversation, renamed: setTitle });
startImport();

// A drawer that was open must not stay above a window that has grown wide.
matchMedia("(width > 52rem)").addEventListener("change", ({ matches }) => {
  if (matches) one("#sidebar").hidePopover();
});
