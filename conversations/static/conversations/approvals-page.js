/* The list of what waits for a person. A decided card turns into a line. */

import { h, icon, one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { ApprovalCard } from "#chat/approval-card.js";
import { DoubtCard } from "#chat/doubt-card.js";
import { InquiryCard } from "#chat/inquiry-card.js";
import { decisionWords } from "#chat/phrases.js";
import { list, waiting } from "#chat/shell.js";
import { Socket } from "#chat/socket.js";

const { requests } = JSON.parse(one("#page-data").textContent ?? "{}");
/** @type {Map<string, HTMLElement>} by approval */
const cards = new Map();
/** @type {Map<string, HTMLElement>} by question */
const inquiries = new Map();
const runs = new Set(requests.map((/** @type {any} */ r) => r.run));

for (const request of requests) {
  if (request.approval_id) showApproval(request);
  else if (request.question_id) showInquiry(request);
  else showDoubt(request);
}
new Socket({ onOpen: () => {}, onState: () => {}, onMessage: ({ channel, data }) => personal[channel]?.(data) });

/** @param {any} data */
function showApproval({ approval_id: id, tool_name: tool, tool_args: args, expires_at: expires, approvers, verdict }) {
  const element = one(`[data-approval="${CSS.escape(id)}"]`);
  cards.set(id, element);
  const approval = { id, status: /** @type {const} */ ("pending"), tool, args, expires, comment: "", approvers, why: "", whole: true, verdict };
  new ApprovalCard(approval, element, (now) => settle(element, decisionWords(now)));
}

/** @param {any} data */
function showDoubt({ run, call, tool_name: tool, tool_args: args }) {
  const element = one(`[data-doubt="${CSS.escape(run)}"]`);
  new DoubtCard({ run, call, tool, args }, element, () => settle(element, gettext("Settled; the run goes on.")));
}

/** @param {any} data */
function showInquiry({ question_id: id, run, status, source, text, fields, url, expires_at: expires }) {
  const element = one(`[data-inquiry="${CSS.escape(id)}"]`);
  inquiries.set(id, element);
  new InquiryCard({ id, run, status, source, text, fields, url, expires }, element, (now) => settle(element, answerWords(now)));
}

/** @param {string} status */
const answerWords = (status) => (status === "answered" ? gettext("Answered; the run goes on.") : gettext("Not answered; the run goes on."));

/** @param {HTMLElement} element @param {string} words */
function settle(element, words) {
  if (!element.isConnected) return;
  element.replaceWith(h("p", { class: "request-settled" }, icon("check"), words));
  setText(one("#announcer"), words);
}

/** @type {Object<string, (data: any) => void>} */
const personal = {
  approval(data) {
    const element = cards.get(data.approval_id);
    if (element && data.status !== "pending") settle(element, decisionWords({ ...data, tool: data.tool_name, comment: data.comment ?? "" }));
  },
  question(data) {
    const element = inquiries.get(data.question_id);
    if (element && data.status !== "pending") settle(element, answerWords(data.status));
  },
  run(data) {
    list.run(data.conversation, data.status);
    waiting.run(data.id, data.status);
    if (data.status === "waiting" && !runs.has(data.id)) one("#news").hidden = false;
  },
  conversation: (data) => list.conversation(data),
};
