/* The chat page: joins connection, sender, thread, composer and list. */

import { ApiError, request } from "#app/api.js";
import { one } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { toast } from "#app/toast.js";
import { startAgentMenu } from "#chat/agent-menu.js";
import { announce } from "#chat/announce.js";
import { Branching } from "#chat/branching.js";
import { showBudget } from "#chat/budget-left.js";
import { Composer } from "#chat/composer.js";
import { showConnection } from "#chat/connection.js";
import { Line } from "#chat/line.js";
import { Meanwhile } from "#chat/meanwhile.js";
import { ModePicker } from "#chat/mode-picker.js";
import { watchModelStatus } from "#chat/model-status.js";
import { readAgain } from "#chat/read-again.js";
import { apply, applySnapshot, isEnded, requeued } from "#chat/run-state.js";
import { Scroller } from "#chat/scroll.js";
import { Sender } from "#chat/sender.js";
import { list, setTitle, shown, waiting } from "#chat/shell.js";
import { Thread } from "#chat/thread.js";

const SETTLED_MS = 1500;
const CATCH_UP_MS = 2500;
const UNTAKEN_MS = 4000;
const ASK_AGAIN_MS = 1000;

const page = JSON.parse(one("#page-data").textContent ?? "{}");
const draftKey = () => `draft:${page.user}:${shown.conversation ?? "new"}`;
shown.conversation = page.conversation;

const thread = new Thread(page.runs, {
  changed,
  retry: (run) => act({ type: "retry", run }),
  takeBack: (question) => (question.id ? meanwhile.takeBack(question) : sender.takeBack(question.clientId)),
  withdraw: (answer) => meanwhile.withdraw(answer.run),
  edit: (question, content, files, clientId) => branching.edit(question, content, files, clientId),
});
const composer = new Composer({ limit: page.max_message_chars, maxBytes: page.max_attachment_bytes, maxFiles: page.max_attachments, draftKey: draftKey(), send, stop });
const modes = new ModePicker();
const meanwhile = new Meanwhile(thread, composer);
let reloading = Promise.resolve();
const branching = new Branching(thread, reload);
const scroller = new Scroller();
const sender = new Sender(page.user, thread, composer, { transmit: (action) => line.send(action), begun: adopt });
const line = new Line({ onOpen: catchUp, onMessage: receive, onState: showConnection });

for (const button of document.querySelectorAll("[data-starter]")) {
  button.addEventListener("click", () => send(button.textContent?.trim() ?? "", []));
}
showRunning();
watchModelStatus();
startAgentMenu();
if (page.returned) meanwhile.collectSoon(false);
composer.form.dataset.ready = "";

/** @param {string} content @param {import("#chat/file-list.js").Attached[]} files */
function send(content, files) {
  meanwhile.sent.add(sender.send(content, files, { parent: branching.atTheEnd(), agent: page.agent, mode: modes.value }));
  scroller.toEnd();
}

function stop() {
  const answer = thread.active;
  if (answer) act({ type: "cancel", run: answer.run.id });
}

/** @param {object} action something that is only worth doing now */
function act(action) {
  if (line.send(action)) return;
  composer.stopButton.disabled = false;
  toast(gettext("There is no connection. Try again when it is back."));
}

/** After each connection: what was missed, then what waits to be sent. */
function catchUp() {
  readMissed();
  sender.resend();
}

/** Asks for what was missed; and once more, another way, for a run that still looks active then. */
function readMissed() {
  watch();
  setTimeout(settle, CATCH_UP_MS);
}

function watch() {
  if (!shown.conversation) return;
  const after = Object.fromEntries([...thread.answers.values()].filter((a) => !isEnded(a.run)).map((a) => [a.run.id, a.run.seq]));
  line.send({ type: "watch", conversation: shown.conversation, after });
}

async function settle() {
  if (!line.isOpen) return; // the next connection tries again
  try {
    await settleRun();
    if (shown.conversation) await readMore();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
  showRunning();
}

/** What was written while this page was away follows what stands here, unless another branch is visible now. */
async function readMore() {
  const { last } = thread;
  const rendered = await readAgain(page);
  if (rendered && last && !rendered.element.querySelector(`[data-message="${last}"]`)) await reload();
  else thread.take(rendered);
}

/** Another branch is visible now. One after the other: what is shown last, and keeps its focus, is the latest. */
function reload() {
  reloading = reloading.catch(() => {}).then(replaceThread);
  return reloading;
}

/** The thread becomes what the server has. */
async function replaceThread() {
  if (new URLSearchParams(location.search).has("before")) return location.assign(location.pathname);
  let last, rendered;
  do {
    ({ last } = thread);
    page.changed = null;
    rendered = await readAgain(page);
  } while (rendered && last !== thread.last); // something came in meanwhile
  if (!rendered) return;
  thread.replace(rendered);
  sender.showWaiting();
  watch();
  showRunning();
}

async function settleRun() {
  const answer = thread.active;
  if (!answer) return;
  for (let after = answer.run.seq; after !== null; ) {
    const { items, next } = await request("GET", `/runs/${answer.run.id}/events?after=${after}`);
    for (const envelope of items) apply(answer.run, envelope);
    after = next;
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
function acknowledged(ack) {
  const { content, parent, attachments } = sender.acknowledged(ack);
  const { client_id, conversation, message, run, injected } = ack;
  if (conversation !== shown.conversation) return;
  if (parent) reload();
  thread.question({ clientId: client_id, id: message, content, files: attachments, injected, run });
  if (!injected) changed(thread.answer(run));
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
function refused(refusal) {
  if (sender.refused(refusal)) return;
  composer.stopButton.disabled = false;
  toast(refusal.message);
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
    if (data.branch) {
      const settled = reloading.catch(() => {}); // perhaps this page's own doing, on its way
      if (data.id === shown.conversation) settled.then(() => (data.branch === page.branch ? undefined : reload()));
      return;
    }
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
    else if (data.status !== "running") setTimeout(() => thread.active && readMissed(), SETTLED_MS);
  },
  message(data) {
    list.touched(data.conversation);
    sender.arrived(data.client_id, data.conversation);
    if (data.conversation !== shown.conversation || data.role !== "user") return;
    if (data.recalled) return meanwhile.returned(data.id);
    thread.question({ clientId: data.client_id, id: data.id, content: data.content, files: data.attachments, injected: data.injected });
  },
  attachment: (data) => composer.files?.read(data),
  notice: (data) => toast(data.message),
  budget: showBudget,
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
