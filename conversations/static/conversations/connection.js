/* Says when there is no connection, once that lasts. */

import { one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";

const NOTICE_AFTER_MS = 1500;
let timer = 0;

/** @param {import("#chat/line.js").LineState} state */
export function showConnection(state) {
  clearTimeout(timer);
  if (state === "lost") timer = setTimeout(() => show(state), NOTICE_AFTER_MS);
  else show(state);
}

const WORDS = {
  connecting: () => "",
  open: () => "",
  lost: () => gettext("No connection. Trying again; what you write is kept."),
  blocked: () => gettext("The live connection is blocked here. The page asks the server in another way; what other devices do appears a little later."),
  "signed-out": () => gettext("You are signed out. What you have written is kept; sign in again to send it."),
};

/** @param {import("#chat/line.js").LineState} state */
function show(state) {
  const box = one("#connection");
  const words = WORDS[state]();
  box.hidden = !words;
  one("a", box).hidden = state !== "signed-out";
  setText(one("[data-message]", box), words);
}
