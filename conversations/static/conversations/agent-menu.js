/* Who answers: on an empty page its links open another empty page; in a conversation the agent changes from here on. */

import { ApiError, request } from "#app/api.js";
import { one, setText } from "#app/dom.js";
import { format, gettext } from "#app/i18n.js";
import { toast } from "#app/toast.js";
import { shown } from "#chat/shell.js";

export function startAgentMenu() {
  const menu = document.querySelector("#agent-menu");
  if (!(menu instanceof HTMLElement)) return;
  menu.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a");
    if (!(link instanceof HTMLElement) || !shown.conversation) return;
    event.preventDefault();
    menu.hidePopover();
    choose(menu, link);
  });
}

/** @param {HTMLElement} menu @param {HTMLElement} link */
async function choose(menu, link) {
  try {
    await request("PATCH", `/conversations/${shown.conversation}`, { agent: Number(link.dataset.agent) });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return toast(error.message);
  }
  for (const other of menu.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  const name = one("strong", link).textContent ?? "";
  const button = one(".agent-button");
  setText(one("[data-agent-name]", button), name);
  one(".icon", button).replaceWith(one(".icon", link).cloneNode(true));
  button.setAttribute("aria-label", `${gettext("Agent")}: ${name}`);
  toast(format(gettext("From now on %(agent)s answers"), { agent: name }));
}
