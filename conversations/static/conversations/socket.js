/* The page's one WebSocket: connects, comes back with growing pauses, says how it stands. */

const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 15_000;
const SIGNED_OUT = 4401;
const TOO_SLOW = 4408;

/** @typedef {"connecting" | "open" | "lost" | "signed-out"} SocketState */

export class Socket {
  /**
   * @param {{onOpen: () => void, onMessage: (data: any) => void, onState: (state: SocketState) => void}} handlers
   */
  constructor(handlers) {
    this.handlers = handlers;
    this.failures = 0;
    this.timer = 0;
    /** @type {SocketState} */
    this.state = "connecting";
    /** @type {WebSocket | null} */
    this.socket = null;
    addEventListener("online", () => this.connect());
    addEventListener("offline", () => this.#drop());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state === "lost") this.connect();
    });
    this.connect();
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  connect() {
    if (this.state === "signed-out" || (this.socket && this.socket.readyState <= WebSocket.OPEN)) return;
    clearTimeout(this.timer);
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/`);
    this.socket = socket;
    socket.onopen = () => {
      this.failures = 0;
      this.#set("open");
      this.handlers.onOpen();
    };
    socket.onmessage = (event) => this.handlers.onMessage(JSON.parse(event.data));
    socket.onclose = (event) => {
      if (this.socket === socket) this.#closed(event.code);
    };
  }

  /**
   * False when there is no connection: what must not get lost goes through the outbox.
   * @param {object} action
   */
  send(action) {
    if (!this.socket || !this.isOpen) return false;
    this.socket.send(JSON.stringify(action));
    return true;
  }

  #drop() {
    const socket = this.socket;
    this.#closed(1006);
    socket?.close();
  }

  /** @param {number} code */
  #closed(code) {
    this.socket = null;
    clearTimeout(this.timer);
    if (code === SIGNED_OUT) return this.#set("signed-out");
    this.#set("lost");
    const pause = code === TOO_SLOW ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.failures);
    this.failures += 1;
    this.timer = setTimeout(() => this.connect(), pause * (0.75 + Math.random() / 2));
  }

  /** @param {SocketState} state */
  #set(state) {
    this.state = state;
    this.handlers.onState(state);
  }
}
