/* Documents are sent file by file, with their progress, and their rows follow what becomes of them. */

import { ApiError, request, upload } from "#app/api.js";
import { clone, one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";

const LOOK_MS = 1500;
const AT_ONCE = 2;
const UNFINISHED = ["queued", "reading", "embedding"];

/** @type {Object<string, () => string>} */
const WORDS = {
  queued: () => gettext("waiting"),
  reading: () => gettext("being read"),
  embedding: () => gettext("being indexed"),
  failed: () => gettext("failed"),
};

const form = one("[data-upload]");
const drop = one("[data-drop]");
/** @type {HTMLInputElement} */
const input = one("input[type=file]", form);
const list = one("[data-documents]");

const never = new AbortController().signal; // leaving the page ends it

/** @type {(() => Promise<void>)[]} */
const waiting = [];
let sending = 0;

input.addEventListener("change", () => {
  add(input.files);
  input.value = "";
});
for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
}
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  add(event.dataTransfer?.files ?? null);
});

/** @param {FileList | null} files */
function add(files) {
  for (const file of files ?? []) {
    const row = clone("document-template");
    setText(one("[data-name]", row), file.name);
    list.prepend(row);
    waiting.push(() => send(file, row));
  }
  one("[data-none]").hidden = true;
  next();
}

function next() {
  while (sending < AT_ONCE && waiting.length) {
    sending += 1;
    waiting.shift()?.().finally(() => {
      sending -= 1;
      next();
    });
  }
}

/** @param {File} file @param {HTMLElement} row */
async function send(file, row) {
  /** @type {HTMLProgressElement} */
  const bar = one("[data-progress]", row);
  const collection = new FormData(/** @type {HTMLFormElement} */ (form)).get("collection");
  bar.hidden = false;
  try {
    show(row, await upload(`/collections/${collection}/documents`, file, (part) => (bar.value = part), never));
    look();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    row.dataset.status = "failed";
    tell(row, `${gettext("not taken")}: ${error.message}`);
  }
  bar.hidden = true;
}

/** @param {HTMLElement} row @param {any} document_ */
function show(row, { id, name, status, problem }) {
  const button = one("button", row);
  row.dataset.document = id;
  setText(one("[data-name]", row), name);
  button.setAttribute("aria-label", `${gettext("Delete")} ${name}`);
  one("form", row).setAttribute("action", `/documents/${id}/delete/`);
  button.hidden = false;
  const words = WORDS[status]?.();
  const said = [words, problem].filter(Boolean).join(": ");
  if (row.dataset.status === status) return;
  row.dataset.status = status;
  tell(row, said || gettext("ready"));
}

/** @param {HTMLElement} row @param {string} words */
function tell(row, words) {
  setText(one("[data-state]", row), `${words} `);
  setText(one("#announcer"), `${one("[data-name]", row).textContent}: ${words}`);
}

let looking = 0;

/** Asks after the documents that are still being worked on, until none is. */
function look() {
  clearTimeout(looking);
  looking = setTimeout(async () => {
    const rows = [...list.querySelectorAll("[data-document]")].filter((row) => row instanceof HTMLElement && UNFINISHED.includes(row.dataset.status ?? ""));
    for (const row of /** @type {HTMLElement[]} */ (rows.slice(0, 20))) {
      try {
        show(row, await request("GET", `/documents/${row.dataset.document}`));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.code === "not_found") row.remove();
      }
    }
    if (rows.length) look();
  }, LOOK_MS);
}

look();
