/* Says when there is no connection, once that lasts. */

import { one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";

const NOTICE_AFTER_MS = 1500;
let timer = 0;

/** @param {import("#chat/socket.js").SocketState} state */
export function showConnection(state) {
  clearTimeout(timer);
  if (state === "lost") timer = setTimeout(() => show(state), NOTICE_AFTER_MS);
  else show(state);
}

/** @param {import("#chat/socket.js").SocketState} state */
function show(state) {
  const box = one("#connection");
  box.hidden = state === "open" || state === "connecting";
  one("a", box).hidden = state !== "signed-out";
  setText(one("[data-message]", box), state === "signed-out"
    ? gettext("You are signed out. What you have written is kept; sign in again to send it.")
    : gettext("No connection. Trying again; what you write is kept."));
}
