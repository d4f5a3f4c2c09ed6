/* The chat page: joins socket, outbox, thread, composer and list. */

import { one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { toast } from "#app/toast.js";
import { announce } from "#chat/announce.js";
import { Composer } from "#chat/composer.js";
import { showConnection } from "#chat/connection.js";
import { Meanwhile } from "#chat/meanwhile.js";
import { watchModelStatus } from "#chat/model-status.js";
import { Outbox } from "#chat/outbox.js";
import { apply, applySnapshot, isEnded, requeued } from "#chat/run-state.js";
import { Scroller } from "#chat/scroll.js";
import { list, setTitle, shown, waiting } from "#chat/shell.js";
import { Socket } from "#chat/socket.js";
import { Thread } from "#chat/thread.js";
import { ApiError, request } from "#app/api.js";

const NOTICE_AFTER_MS = 1500;
const RESEND_MS = 3000;
const CATCH_UP_MS = 2500;
const UNTAKEN_MS = 4000;
const ASK_AGAIN_MS = 1000;

const page = JSON.parse(one("#page-data").textContent ?? "{}");
const outbox = new Outbox(page.user);
const draftKey = () => `draft:${page.user}:${shown.conversation ?? "new"}`;
shown.conversation = page.conversation;

const thread = new Thread(page.runs, {
  changed,
  retry: (run) => act({ type: "retry", run }),
  takeBack: (question) => (question.id ? meanwhile.takeBack(question) : takeBack(question.clientId)),
  withdraw: (answer) => meanwhile.withdraw(answer.run),
});
const composer = new Composer({ limit: page.max_message_chars, draftKey: draftKey(), send, stop });
const meanwhile = new Meanwhile(thread, composer);
const scroller = new Scroller();
const socket = new Socket({ onOpen: catchUp, onMessage: receive, onState: showConnection });

for (const entry of outbox.entries.filter((e) => e.conversation === shown.conversation)) showUnsent(entry);
for (const button of document.querySelectorAll("[data-starter]")) {
  button.addEventListener("click", () => send(button.textContent?.trim() ?? ""));
}
showRunning();
watchModelStatus();
composer.form.dataset.ready = "";

/** @param {string} content */
function send(content) {
  const entry = outbox.add(shown.conversation, content);
  meanwhile.sent.add(entry.client_id);
  thread.question({ clientId: entry.client_id, content });
  scroller.toEnd();
  if (isNext(entry)) transmit(entry);
  setTimeout(() => {
    if (outbox.entries.some((e) => e.client_id === entry.client_id)) showUnsent(entry);
  }, NOTICE_AFTER_MS);
}

/** Messages of this page that the server has not confirmed, oldest first. */
const unconfirmed = () => outbox.entries.filter((e) => e.conversation === shown.conversation && thread.questions.has(e.client_id));

/** The second message of a new chat waits until the first has made the conversation. @param {import("#chat/outbox.js").Entry} entry */
const isNext = (entry) => entry.conversation !== null || [entry.client_id, undefined].includes(unconfirmed()[0]?.client_id);

/** @param {import("#chat/outbox.js").Entry} entry */
function transmit({ client_id, conversation, content }) {
  return socket.send({ type: "send", client_id, content, ...(conversation ? { conversation } : {}) });
}

/** @param {import("#chat/outbox.js").Entry} entry */
function showUnsent(entry) {
  const question = thread.question({ clientId: entry.client_id, content: entry.content });
  question.setState("unsent", gettext("Not sent yet – goes out when the connection is back"));
}

/** A message that the server does not have goes back to its writer. @param {string} clientId */
function takeBack(clientId) {
  const entry = outbox.remove(clientId);
  thread.remove(clientId);
  if (entry) composer.giveBack(entry.content);
}

function stop() {
  const answer = thread.active;
  if (answer) act({ type: "cancel", run: answer.run.id });
}

/** @param {object} action something that is only worth doing now */
function act(action) {
  if (socket.send(action)) return;
  composer.stopButton.disabled = false;
  toast(gettext("There is no connection. Try again when it is back."));
}

/** After each connection: what was missed, then what waits to be sent. */
function catchUp() {
  readMissed();
  for (const entry of outbox.entries.filter(isNext)) transmit(entry);
}

/** Asks for what was missed; and once more, another way, for a run that still looks active then. */
function readMissed() {
  watch();
  setTimeout(settle, CATCH_UP_MS);
}

function watch() {
  if (!shown.conversation) return;
  const after = Object.fromEntries([...thread.answers.values()].filter((a) => !isEnded(a.run)).map((a) => [a.run.id, a.run.seq]));
  socket.send({ type: "watch", conversation: shown.conversation, after });
}

async function settle() {
  const answer = thread.active;
  if (!answer || !socket.isOpen) return;
  try {
    const missed = await request("GET", `/runs/${answer.run.id}/events?after=${answer.run.seq}`);
    for (const envelope of missed) apply(answer.run, envelope);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return; // the next connection tries again
  }
  changed(answer);
}

/** @param {any} data an answer to an action, a snapshot, or an envelope */
function receive(data) {
  if (data.type === "ack") acknowledged(data);
  else if (data.type === "error") refused(data);
  else if (data.type === "snapshot") snapshot(data);
  else if (data.run && !data.cursor) event(data);
  else personal[data.channel]?.(data.data);
}

/** @param {any} ack */
function acknowledged({ client_id, conversation, message, run, injected }) {
  const entry = outbox.entries.find((e) => e.client_id === client_id);
  arrived(client_id, conversation);
  outbox.remove(client_id);
  if (conversation !== shown.conversation) return;
  thread.question({ clientId: client_id, id: message, content: entry?.content ?? "", injected, run });
  if (!injected) changed(thread.answer(run));
}

/** A message of this page is on record, as its `ack` or the person's own stream tells. @param {string} clientId @param {string} conversation */
function arrived(clientId, conversation) {
  if (!thread.questions.has(clientId)) return; // another page's: that page has to hear of it itself
  outbox.remove(clientId);
  if (shown.conversation) return;
  const waiting = unconfirmed();
  adopt(conversation);
  for (const { client_id } of waiting) transmit(outbox.assign(client_id, conversation));
}

/** The page becomes that of a conversation which has just begun. @param {string} conversation */
function adopt(conversation) {
  shown.conversation = conversation;
  history.replaceState(null, "", `/c/${conversation}/`);
  composer.moveDraft(draftKey());
  one(".main-head [data-conversation-menu]").hidden = false;
  const title = list.item(conversation)?.querySelector(".title")?.textContent;
  if (title) setTitle(title);
  list.setCurrent(conversation);
  watch();
}

/** @param {{client_id?: string, code: string, message: string}} refusal */
function refused({ client_id, code, message }) {
  const entry = client_id ? outbox.entries.find((e) => e.client_id === client_id) : undefined;
  if (!entry) {
    composer.stopButton.disabled = false;
    return toast(message);
  }
  if (code === "unavailable") {
    showUnsent(entry);
    setTimeout(() => outbox.entries.some((e) => e.client_id === client_id) && transmit(entry), RESEND_MS);
    return;
  }
  takeBack(entry.client_id);
  toast(message);
}

/** @param {any} data */
function snapshot(data) {
  const answer = thread.answer(data.run);
  if (applySnapshot(answer.run, data) === "gap") fillGap(answer.run);
  changed(answer);
}

let asked = { place: "", at: 0 };

/** Asks for what is missing, once for each place and second. @param {import("#chat/run-state.js").Run} run */
function fillGap({ id, seq, length }) {
  const place = `${id}:${seq}:${length}`;
  if (place === asked.place && Date.now() - asked.at < ASK_AGAIN_MS) return;
  asked = { place, at: Date.now() };
  watch();
}

/** @param {import("#chat/run-state.js").Envelope} envelope */
function event(envelope) {
  const answer = thread.answer(envelope.run);
  const result = apply(answer.run, envelope);
  if (result === "gap") fillGap(answer.run);
  if (result !== "applied") return;
  changed(answer);
  announce(envelope, answer.run);
  if (envelope.channel === "done") meanwhile.ended(answer.run);
}

/** What concerns this person everywhere: the list, and messages sent from other tabs. @type {Object<string, (data: any) => void>} */
const personal = {
  conversation(data) {
    list.conversation(data);
    if (data.id !== shown.conversation) return;
    if (data.deleted) return location.assign("/");
    if (data.title) setTitle(data.title);
    list.setCurrent(data.id);
  },
  run(data) {
    list.run(data.conversation, data.status);
    waiting.run(data.id, data.status);
    if (data.conversation !== shown.conversation) return;
    if (data.status === "queued") queued(thread.answer(data.id));
    else if (data.status !== "running") setTimeout(() => thread.active && readMissed(), NOTICE_AFTER_MS);
  },
  message(data) {
    list.touched(data.conversation);
    arrived(data.client_id, data.conversation);
    if (data.conversation !== shown.conversation || data.role !== "user") return;
    if (data.recalled) return meanwhile.returned(data.id);
    thread.question({ clientId: data.client_id, id: data.id, content: data.content, injected: data.injected });
  },
  notice: (data) => toast(data.message),
};

/** A run that nobody takes for a while makes the page ask why. @param {import("#chat/answer.js").Answer} answer */
function queued(answer) {
  if (answer.run.status === "waiting" || answer.run.steps.length > 0) requeued(answer.run);
  changed(answer);
  setTimeout(() => answer.run.status === "queued" && watchModelStatus(), UNTAKEN_MS);
}

/** @param {import("#chat/answer.js").Answer} answer */
function changed(answer) {
  answer.schedule();
  thread.offer();
  showRunning();
}

function showRunning() {
  composer.setRunning(thread.active !== null);
}
