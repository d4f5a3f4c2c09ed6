/* A run in the thread: its work, its answer, how it ended, and what can be done with it. */

import { clone, copyText, icon, one, setText, h } from "#app/dom.js";
import { duration, gettext, ngettext } from "#app/i18n.js";
import { money } from "#app/money.js";
import { toast } from "#app/toast.js";
import { Files } from "#chat/files.js";
import { startFeedback, startPin } from "#chat/marks.js";
import { modeName } from "#chat/modes.js";
import { renderInto } from "#chat/render.js";
import { Requests } from "#chat/requests.js";
import { isEnded, open, pending } from "#chat/run-state.js";
import { Timeline } from "#chat/timeline.js";

/** @typedef {import("#chat/run-state.js").Run} Run */

const ON_AN_ANSWER = ["copy", "regenerate", "branch", "feedback", "pin"]; // buttons that need one

export class Answer {
  /**
   * @param {Run} run
   * @param {HTMLElement | null} element what the server rendered, if it did
   * @param {{retry: (run: string) => void, changed: (answer: Answer) => void}} actions
   */
  constructor(run, element, { retry, changed }) {
    this.run = run;
    this.element = element ?? clone("answer-template");
    this.element.dataset.run = run.id;
    this.text = one(".answer", this.element);
    this.outcome = one("[data-outcome]", this.element);
    this.foot = one(".answer-foot", this.element);
    this.timeline = new Timeline(/** @type {HTMLDetailsElement} */ (one(".work", this.element)));
    this.requests = new Requests(one("[data-requests]", this.element), () => changed(this));
    this.files = new Files(one("[data-files]", this.element));
    this.frame = 0;
    if (element && this.text.textContent) Object.assign(run, { text: this.text.textContent, length: [...this.text.textContent].length });
    run.messageId ||= this.element.dataset.message ?? "";
    one("[data-details]", this.element).setAttribute("href", `/runs/${run.id}/`);
    one("[data-copy]", this.element).addEventListener("click", () => copy(this.run.text));
    startPin(this.element);
    startFeedback(this.element);
    one("[data-retry]", this.element).addEventListener("click", () => retry(run.id));
    this.draw();
  }

  /** Draws with the next frame, however many events come until then. */
  schedule() {
    if (this.frame) return;
    // A hidden page gets no frames; it draws at once, and rarely.
    this.frame = document.hidden ? setTimeout(() => this.draw(), 250) : requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const { run } = this;
    const ended = isEnded(run);
    this.element.dataset.status = run.status;
    this.element.dataset.message = run.messageId;
    this.element.setAttribute("aria-busy", String(!ended));
    this.timeline.update(run);
    this.requests.update(run);
    this.text.hidden = run.text === "";
    this.files.update(run);
    this.#problems();
    if (run.text) renderInto(this.text, run.text);
    this.#outcome();
    this.foot.hidden = !ended;
    for (const button of ON_AN_ANSWER.flatMap((name) => [...this.element.querySelectorAll(`[data-${name}]`)])) {
      /** @type {HTMLElement} */ (button).hidden = !run.messageId || !run.text;
    }
    if (ended) this.#facts();
  }

  #outcome() {
    const { run } = this;
    const { words, kind, symbol } = outcome(run);
    this.outcome.hidden = !words;
    if (!words) return;
    this.outcome.className = `notice ${kind}`;
    one(".icon", this.outcome).replaceWith(icon(symbol));
    setText(one("[data-message]", this.outcome), words);
    one("[data-retry]", this.outcome).hidden = run.status !== "failed" && run.status !== "cancelled";
  }

  /** Files that the model had to do without. */
  #problems() {
    const list = one("[data-problems]", this.element);
    const { problems } = this.run;
    list.hidden = problems.length === 0;
    if (list.childElementCount === problems.length) return;
    list.replaceChildren(...problems.map(({ filename, message }) => h("li", {}, icon("triangle-alert"), h("span", {}, h("strong", {}, filename), ": ", message))));
  }

  #facts() {
    const { run } = this;
    const steps = run.steps.filter((s) => s.kind === "call").length;
    const facts = [
      run.model,
      run.mode === "react" ? "" : modeName(run.route?.mode || run.mode),
      steps ? ngettext("%(count)s step", "%(count)s steps", steps) : "",
      run.elapsed === null ? "" : duration(run.elapsed),
      run.tokens ? ngettext("%(count)s token", "%(count)s tokens", run.tokens) : "",
      run.cost ? money(run.cost) : "",
    ].filter(Boolean);
    one(".facts", this.foot).replaceChildren(...facts.map((fact) => h("span", fact === run.model && run.why ? { title: run.why } : {}, fact)));
  }

}

/**
 * What the reader must know beside the answer, in words.
 * @param {Run} run
 */
function outcome(run) {
  if (run.status === "cancelled" && run.reason === "rejected") return { words: gettext("The draft was rejected. Nothing was published."), kind: "", symbol: "circle-x" };
  if (run.status === "cancelled" && run.reason === "expired") return { words: gettext("Nobody signed the draft in time. Nothing was published."), kind: "", symbol: "clock" };
  if (run.status === "cancelled") return { words: run.text ? gettext("Stopped. This is what there was until then.") : gettext("Stopped before there was an answer."), kind: "", symbol: "circle-stop" };
  if (run.status === "failed") return { words: run.error || gettext("The run broke off. Your message is kept."), kind: "notice-danger", symbol: "circle-alert" };
  if (run.status === "queued" && run.reason === "model_unavailable") return { words: gettext("The model is not answering. Your message is kept and will be tried again."), kind: "notice-warn", symbol: "clock" };
  if (run.status === "queued" && run.reason === "model_loading") return { words: gettext("The model is still being loaded. Your message is kept and runs as soon as it is ready."), kind: "", symbol: "clock" };
  if (run.status === "waiting" && pending(run).length === 0 && open(run).length === 0 && !run.doubt) return { words: gettext("Waiting for a person to decide."), kind: "notice-wait", symbol: "clock" };
  if (run.reason === "limit:budget") return { words: gettext("The budget is used up; the answer says what was done and what was not. “Usage and budget” says when it begins anew."), kind: "notice-warn", symbol: "gauge" };
  if (run.reason.startsWith("limit") || run.reason === "max_iterations") return { words: gettext("The run reached its limit; the answer says what was done and what was not."), kind: "notice-warn", symbol: "triangle-alert" };
  return { words: "", kind: "", symbol: "info" };
}

/** An answer of which no run is on record, such as an imported one. @param {HTMLElement} element that the server rendered */
export function showWithoutRun(element) {
  const box = one(".answer", element);
  const text = box.textContent ?? "";
  renderInto(box, text);
  one("[data-copy]", element).addEventListener("click", () => copy(text));
  startPin(element);
  startFeedback(element);
}

/** @param {string} text */
async function copy(text) {
  await copyText(text);
  toast(gettext("Copied"));
}
