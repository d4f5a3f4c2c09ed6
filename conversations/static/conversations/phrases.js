/* Short wordings that several parts of the page share. */

import { gettext, format } from "#app/i18n.js";

const LINE_CHARS = 110;

/** The first sentence, short enough for a line. @param {string} text */
export function sentence(text) {
  const first = text.trim().split(/(?<=[.!?])\s|\n/)[0] ?? "";
  return first.length > LINE_CHARS ? `${first.slice(0, LINE_CHARS - 1)}…` : first;
}

/** `send_mail` as a person would write it. @param {string} name */
export function toolWords(name) {
  const words = name.replace(/[_-]/g, " ").trim();
  return words.charAt(0).toLocaleUpperCase() + words.slice(1);
}

/** What a judge said of a draft. @param {string} verdict */
export function verdictWords(verdict) {
  switch (verdict) {
    case "pass": return gettext("Checked, nothing found.");
    case "fail": return gettext("Checked, with objections:");
    default: return gettext("Checked, a person has to decide:");
  }
}

/** What became of a request. @param {import("#chat/run-state.js").Approval} approval */
export function decisionWords({ status, tool, comment }) {
  const words = {
    pending: gettext("Waits for approval: %(tool)s"),
    approved: gettext("Approved: %(tool)s"),
    rejected: gettext("Rejected: %(tool)s"),
    expired: gettext("Expired without a decision: %(tool)s"),
    superseded: gettext("Withdrawn: %(tool)s"),
  }[status];
  const line = format(words, { tool: toolWords(tool) });
  return comment ? `${line} – “${comment}”` : line;
}
