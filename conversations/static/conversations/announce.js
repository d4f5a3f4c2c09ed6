/* Tells people who do not see the page what has changed. */

import { one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { decisionWords } from "#chat/phrases.js";

/**
 * @param {import("#chat/run-state.js").Envelope} envelope
 * @param {import("#chat/run-state.js").Run} run as it is after the envelope
 */
export function announce({ channel, data }, run) {
  const words = channel === "done" ? endWords(run)
    : channel === "run" && data.status === "waiting" ? gettext("The work waits for you.")
      : channel === "approval" && data.status !== "pending" ? decisionWords({ ...data, tool: data.tool_name, comment: data.comment ?? "" })
        : "";
  if (words) setText(one("#announcer"), words);
}

/** @param {import("#chat/run-state.js").Run} run */
const endWords = (run) => (run.status === "completed" ? gettext("The answer is ready.") : gettext("The run has ended."));
