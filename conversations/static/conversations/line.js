/* The page's line to the server: a WebSocket, or, where a proxy refuses it, what works instead. */

import { ApiError, request } from "#app/api.js";
import { Fallback } from "#chat/fallback.js";
import { Socket } from "#chat/socket.js";

const ATTEMPTS = 3;
const LOOK_AGAIN_MS = 10_000;

/** @typedef {import("#chat/socket.js").SocketState | "blocked"} LineState */

export class Line {
  /** @param {{onOpen: () => void, onMessage: (data: any) => void, onState: (state: LineState) => void}} handlers `onOpen` comes after each connection, and while blocked from time to time */
  constructor(handlers) {
    this.handlers = handlers;
    this.wasOpen = false;
    this.failures = 0;
    this.timer = 0;
    /** @type {Fallback | null} */
    this.fallback = null;
    this.socket = new Socket({ onMessage: handlers.onMessage, onOpen: () => this.#opened(), onState: (state) => this.#changed(state) });
  }

  get isOpen() {
    return this.socket.isOpen || this.fallback !== null;
  }

  /** False when there is no connection: what must not get lost goes through the outbox. @param {object} action */
  send(action) {
    if (!this.fallback) return this.socket.send(action);
    this.fallback.send(action);
    return true;
  }

  #opened() {
    this.wasOpen = true;
    this.fallback?.end();
    this.fallback = null;
    clearInterval(this.timer);
    this.handlers.onOpen();
  }

  /** @param {import("#chat/socket.js").SocketState} state */
  async #changed(state) {
    if (this.fallback && state === "lost") return;
    this.handlers.onState(state);
    if (state !== "lost" || this.wasOpen) return;
    this.failures += 1;
    if (this.failures >= ATTEMPTS && (await isServerThere())) this.#goAround();
  }

  #goAround() {
    if (this.fallback || this.socket.isOpen) return;
    this.fallback = new Fallback(this.handlers.onMessage);
    this.handlers.onState("blocked");
    this.handlers.onOpen();
    this.timer = setInterval(this.handlers.onOpen, LOOK_AGAIN_MS);
  }
}

async function isServerThere() {
  try {
    return Boolean(await request("GET", "/status"));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return false;
  }
}
