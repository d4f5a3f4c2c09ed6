/* Messages on their way: shown at once, sent in order, kept until the server has confirmed them. */

import { gettext } from "#app/i18n.js";
import { toast } from "#app/toast.js";
import { Outbox } from "#chat/outbox.js";
import { shown } from "#chat/shell.js";

const NOTICE_AFTER_MS = 1500;
const RESEND_MS = 3000;

/** @typedef {import("#chat/outbox.js").Entry} Entry */

export class Sender {
  /**
   * @param {string} user
   * @param {import("#chat/thread.js").Thread} thread
   * @param {import("#chat/composer.js").Composer} composer
   * @param {{transmit: (action: object) => boolean, begun: (conversation: string) => void}} page `begun`: a new chat has got its conversation
   */
  constructor(user, thread, composer, page) {
    this.outbox = new Outbox(user);
    this.thread = thread;
    this.composer = composer;
    this.page = page;
    this.showWaiting();
  }

  /** What the server has not confirmed stands at the end of the thread. */
  showWaiting() {
    for (const entry of this.outbox.entries.filter((e) => e.conversation === shown.conversation)) this.#showUnsent(entry);
  }

  /**
   * @param {string} content
   * @param {import("#chat/file-list.js").Attached[]} files
   * @param {{parent: string, agent: number | null, mode: string}} place see `Outbox.add`
   * @returns {string} the message's client id
   */
  send(content, files, place) {
    const entry = this.outbox.add(shown.conversation, content, files, place);
    this.thread.question({ clientId: entry.client_id, content, files });
    if (this.#isNext(entry)) this.#transmit(entry);
    setTimeout(() => this.#entry(entry.client_id) && this.#showUnsent(entry), NOTICE_AFTER_MS);
    return entry.client_id;
  }

  /** There is a connection: what waits goes out. */
  resend() {
    for (const entry of this.outbox.entries.filter((e) => this.#isNext(e))) this.#transmit(entry);
  }

  /** A message that the server does not have goes back to its writer. @param {string} clientId */
  takeBack(clientId) {
    const entry = this.outbox.remove(clientId);
    this.thread.remove(clientId);
    if (entry) this.composer.giveBack(entry.content, entry.attachments);
  }

  /** @param {any} ack @returns {{content: string, parent: string, attachments: import("#chat/file-list.js").Attached[]}} what was sent, if this page knows it */
  acknowledged({ client_id, conversation }) {
    const { content = "", parent = "", attachments = [] } = this.#entry(client_id) ?? {};
    this.arrived(client_id, conversation);
    this.outbox.remove(client_id);
    return { content, parent, attachments };
  }

  /** A message of this page is on record, as its `ack` or the person's own stream tells. @param {string} clientId @param {string} conversation */
  arrived(clientId, conversation) {
    if (!this.thread.questions.has(clientId)) return; // another page's: that page has to hear of it itself
    this.outbox.remove(clientId);
    if (shown.conversation) return;
    const waiting = this.#unconfirmed;
    this.page.begun(conversation);
    for (const { client_id } of waiting) this.#transmit(this.outbox.assign(client_id, conversation));
  }

  /**
   * @param {{client_id?: string, code: string, message: string}} refusal
   * @returns {boolean} whether it was about a message on its way
   */
  refused({ client_id, code, message }) {
    const entry = this.#entry(client_id ?? "");
    if (!entry) return false;
    if (code === "unavailable") {
      this.#showUnsent(entry);
      setTimeout(() => this.#entry(entry.client_id) && this.#transmit(entry), RESEND_MS);
    } else {
      this.takeBack(entry.client_id);
      toast(message);
    }
    return true;
  }

  /** @param {string} clientId */
  #entry(clientId) {
    return this.outbox.entries.find((e) => e.client_id === clientId);
  }

  /** Messages of this page that the server has not confirmed, oldest first. */
  get #unconfirmed() {
    return this.outbox.entries.filter((e) => e.conversation === shown.conversation && this.thread.questions.has(e.client_id));
  }

  /** The second message of a new chat waits until the first has made the conversation. @param {Entry} entry */
  #isNext(entry) {
    return entry.conversation !== null || [entry.client_id, undefined].includes(this.#unconfirmed[0]?.client_id);
  }

  /** @param {Entry} entry */
  #transmit({ client_id, conversation, content, attachments = [], parent, agent, mode }) {
    const files = attachments.length > 0 ? { attachments: attachments.map((file) => file.id) } : {};
    const place = { ...(conversation ? { conversation } : { agent }), ...(parent ? { parent } : {}), ...(mode ? { mode } : {}), ...files };
    this.page.transmit({ type: "send", client_id, content, ...place });
  }

  /** @param {Entry} entry */
  #showUnsent(entry) {
    const question = this.thread.question({ clientId: entry.client_id, content: entry.content, files: entry.attachments });
    question.setState("unsent", gettext("Not sent yet – goes out when the connection is back"));
  }
}
