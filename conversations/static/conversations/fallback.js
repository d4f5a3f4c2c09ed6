/* Where WebSockets do not pass: the same actions by REST, the same envelopes by Server-Sent Events. */

import { ApiError, request } from "#app/api.js";
import { CHANNELS } from "#chat/run-state.js";

const UNAVAILABLE = new Set(["unreachable", "unavailable", "502", "503", "504"]);

export class Fallback {
  /** @param {(data: any) => void} onMessage takes what the socket would have said */
  constructor(onMessage) {
    this.onMessage = onMessage;
    /** @type {Map<string, EventSource>} by run */
    this.sources = new Map();
  }

  /** @param {any} action one that the socket would take */
  send(action) {
    if (action.type === "watch") for (const [run, seq] of Object.entries(action.after)) this.#follow(run, seq);
    else this.#act(action);
  }

  end() {
    for (const source of this.sources.values()) source.close();
    this.sources.clear();
  }

  /** @param {any} action */
  async #act(action) {
    try {
      if (action.type === "send") await this.#sendMessage(action);
      else if (action.type === "cancel") await request("POST", `/runs/${action.run}/cancel`);
      else if (action.type === "retry") this.#follow((await request("POST", `/runs/${action.run}/retry`)).id, 0);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const code = UNAVAILABLE.has(error.code) ? "unavailable" : error.code;
      this.onMessage({ type: "error", client_id: action.client_id, code, message: error.message });
    }
  }

  /** @param {{client_id: string, conversation?: string, content: string, parent?: string, agent?: number | null, mode?: string, attachments?: string[]}} message */
  async #sendMessage({ client_id, conversation, content, parent, agent, mode, attachments }) {
    if (conversation) {
      const sent = await request("POST", `/conversations/${conversation}/messages`, { content, client_id, parent, mode, attachments });
      return this.#sent({ ...sent, client_id, conversation });
    }
    const run = await request("POST", "/runs", { input: content, client_id, agent, mode, attachments });
    this.onMessage({ channel: "conversation", data: { id: run.conversation, title: content.split("\n")[0].slice(0, 80), archived: false } });
    this.#sent({ client_id, conversation: run.conversation, message: run.message, run: run.id, injected: false });
  }

  /** @param {{client_id: string, conversation: string, message: string, run: string, injected: boolean}} ack */
  #sent(ack) {
    this.onMessage({ type: "ack", ...ack });
    this.#follow(ack.run, 0);
  }

  /** @param {string} run @param {number} seq the last event that the page has */
  #follow(run, seq) {
    if (this.sources.has(run)) return;
    const source = new EventSource(`/api/v1/runs/${run}/events?after=${seq}`);
    this.sources.set(run, source);
    for (const channel of CHANNELS) source.addEventListener(channel, (event) => this.#take(run, source, /** @type {MessageEvent} */ (event)));
  }

  /** @param {string} run @param {EventSource} source @param {MessageEvent} event */
  #take(run, source, event) {
    if (event.data) this.onMessage(JSON.parse(event.data)); // without data it is the browser's own "error"
    if (event.type !== "done" && source.readyState !== EventSource.CLOSED) return;
    source.close();
    this.sources.delete(run);
  }
}
