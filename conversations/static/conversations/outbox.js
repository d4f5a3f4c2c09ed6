/* Messages that the server has not confirmed yet. They outlive the page and are sent again under the same id. */

/** @typedef {{client_id: string, conversation: string | null, content: string, attachments?: import("#chat/file-list.js").Attached[], parent: string, agent: number | null, mode?: string, at: number}} Entry */

export class Outbox {
  /** @param {string} user whose messages these are: a browser may have several */
  constructor(user) {
    this.key = `outbox:${user}`;
    /** @type {Entry[]} for browsers that keep nothing */
    this.memory = [];
  }

  /** @returns {Entry[]} */
  get entries() {
    try {
      return JSON.parse(localStorage.getItem(this.key) ?? "[]");
    } catch {
      return this.memory;
    }
  }

  /** @param {Entry[]} entries */
  #store(entries) {
    this.memory = entries;
    try {
      if (entries.length > 0) localStorage.setItem(this.key, JSON.stringify(entries));
      else localStorage.removeItem(this.key);
    } catch { /* storage is full or forbidden: kept in memory */ }
  }

  /**
   * @param {string | null} conversation
   * @param {string} content
   * @param {import("#chat/file-list.js").Attached[]} attachments
   * @param {{parent: string, agent: number | null, mode: string}} place the message after which it begins a branch (empty:
   *   the end of the conversation), who answers in a new one, and in which way (empty: in the agent's own)
   * @returns {Entry}
   */
  add(conversation, content, attachments, { parent, agent, mode }) {
    const entry = { client_id: newId(), conversation, content, attachments, parent, agent, mode, at: Date.now() };
    this.#store([...this.entries, entry]);
    return entry;
  }

  /**
   * Gives a message to the conversation that the one before it has made.
   * @param {string} clientId
   * @param {string} conversation
   * @returns {Entry}
   */
  assign(clientId, conversation) {
    const entries = this.entries.map((e) => (e.client_id === clientId ? { ...e, conversation } : e));
    this.#store(entries);
    return /** @type {Entry} */ (entries.find((e) => e.client_id === clientId));
  }

  /** @param {string} clientId @returns {Entry | undefined} */
  remove(clientId) {
    const entry = this.entries.find((e) => e.client_id === clientId);
    this.#store(this.entries.filter((e) => e.client_id !== clientId));
    return entry;
  }
}

/** `randomUUID` exists on https and localhost only. */
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
