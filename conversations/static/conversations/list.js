/* The list of conversations, kept true by what the server tells this person. */

import { clone, icon, one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { startOlder } from "#chat/list-older.js";

const ACTIVE = new Set(["queued", "running", "waiting"]);

export class ConversationList {
  constructor() {
    this.root = one(".conversations");
    this.search = /** @type {HTMLInputElement} */ (one(".search input[type=search]"));
    this.showsArchived = "archived" in this.root.dataset;
    this.search.addEventListener("input", () => this.#filter());
    document.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        const drawer = one("#sidebar");
        if (drawer.offsetParent === null && getComputedStyle(drawer).display === "none") drawer.showPopover();
        this.search.select();
      }
    });
    if (!/Mac|iPhone|iPad/.test(navigator.platform)) setText(one(".search kbd"), "Ctrl K");
    this.#spin(this.root);
    startOlder(this.root, (item) => this.#append(item));
  }

  /** @param {ParentNode} root */
  #spin(root) {
    for (const mark of root.querySelectorAll(".mark:not([data-state=waiting]) .icon")) mark.classList.add("spinning");
  }

  /** One more, older than all that stand here. @param {HTMLElement} item as the server renders it */
  #append(item) {
    const id = item.dataset.conversation ?? "";
    const group = item.closest("[data-group]")?.getAttribute("data-group");
    if (this.item(id) || !group) return;
    const own = /** @type {HTMLElement} */ (document.importNode(item, true));
    this.#spin(own);
    one(`[data-group=${group}] ul`, this.root).append(own);
    this.#filter();
  }

  /** @param {string} id @returns {HTMLElement | null} */
  item(id) {
    return this.root.querySelector(`[data-conversation="${CSS.escape(id)}"]`);
  }

  /**
   * A conversation is new, renamed, pinned, archived or gone.
   * @param {{id: string, title?: string, pinned?: boolean, archived?: boolean, deleted?: boolean}} data
   */
  conversation({ id, title, pinned, archived, deleted }) {
    const known = this.item(id);
    if (deleted || (archived !== undefined && archived !== this.showsArchived)) {
      known?.remove();
      return this.#tidy();
    }
    const item = known ?? this.#create(id);
    if (title !== undefined) setText(one(".title", item), title || gettext("New conversation"));
    const moves = pinned !== undefined && pinned !== "pinned" in item.dataset;
    if (moves) item.toggleAttribute("data-pinned", pinned);
    if (!known || moves) this.#toTop(item);
    this.#tidy();
  }

  /** Something was said in it. @param {string} id */
  touched(id) {
    const item = this.item(id);
    if (item) this.#toTop(item);
    this.#tidy();
  }

  /**
   * @param {string} id
   * @param {string} status of its run
   */
  run(id, status) {
    const mark = this.item(id)?.querySelector(".mark");
    if (!(mark instanceof HTMLElement)) return;
    mark.hidden = !ACTIVE.has(status);
    mark.dataset.state = status;
    setText(one(".visually-hidden", mark), status === "waiting" ? gettext("waiting for you") : gettext("working"));
    one(".icon", mark).replaceWith(status === "waiting" ? icon("clock") : icon("loader-circle", "spinning"));
  }

  /** @param {string} id the conversation that this page shows */
  setCurrent(id) {
    for (const link of this.root.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
    this.item(id)?.querySelector("a")?.setAttribute("aria-current", "page");
  }

  /** @param {string} id */
  #create(id) {
    const item = clone("list-item-template");
    item.dataset.conversation = id;
    one("a", item).setAttribute("href", `/c/${id}/`);
    return item;
  }

  /** @param {HTMLElement} item */
  #toTop(item) {
    const group = "pinned" in item.dataset ? "pinned" : "today";
    const list = one(`[data-group=${group}] ul`, this.root);
    if (list.firstElementChild !== item) list.prepend(item);
  }

  #tidy() {
    let any = false;
    for (const group of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll("[data-group]"))) {
      group.hidden = !group.querySelector(".conversation:not([hidden])");
      any ||= !group.hidden;
    }
    one("[data-empty]", this.root).hidden = any;
  }

  #filter() {
    const wanted = this.search.value.trim().toLocaleLowerCase();
    for (const item of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll(".conversation"))) {
      item.hidden = !one(".title", item).textContent?.toLocaleLowerCase().includes(wanted);
    }
    this.#tidy();
    const empty = one("[data-empty]", this.root);
    if (!empty.hidden && wanted) setText(empty, gettext("Nothing in this list. Enter searches all conversations and their messages."));
  }
}
