/* The agent's work: a summary line, below it a line for each step, below that everything about the step. */

import { h, icon, one, setText } from "#app/dom.js";
import { duration, format, gettext, ngettext } from "#app/i18n.js";
import { isEnded } from "#chat/run-state.js";
import { gist, showValue } from "#chat/values.js";

/** @typedef {import("#chat/run-state.js").Run} Run @typedef {import("#chat/run-state.js").Step} Step */

const ICONS = { running: "loader-circle", done: "circle-check", failed: "circle-x", stopped: "circle-stop" };
const WHAT_CHARS = 110;

export class Timeline {
  /** @param {HTMLDetailsElement} root */
  constructor(root) {
    this.root = root;
    this.summary = one(".summary-text", root);
    this.list = one(".steps", root);
    /** @type {Map<string, {element: HTMLElement, drawn: string}>} */
    this.lines = new Map();
    this.touched = false;
    root.querySelector("summary")?.addEventListener("click", () => { this.touched = true; });
  }

  /** @param {Run} run */
  update(run) {
    const ended = isEnded(run);
    this.root.hidden = run.steps.length === 0 && ended;
    setText(this.summary, ended ? this.#worked(run) : this.#working(run));
    this.#mark(ended);
    if (!this.touched) this.root.open = run.steps.length > 0 && !ended && run.text === "";
    for (const step of run.steps) this.#line(step);
  }

  /** Elapsed seconds of what is going on; called while it is. @param {Run} run */
  tick(run) {
    setText(this.summary, this.#working(run));
    for (const step of run.steps) {
      if (step.state !== "running") continue;
      const time = this.lines.get(step.key)?.element.querySelector(".time");
      if (time) setText(time, duration(seconds(step.at)));
    }
  }

  /** @param {boolean} ended */
  #mark(ended) {
    const name = ended ? "chevron-right" : "loader-circle";
    const old = one("summary > .icon", this.root);
    if (old.matches(ended ? ".chevron" : ".spinning")) return;
    old.replaceWith(icon(name, ended ? "chevron" : "spinning"));
  }

  /** @param {Run} run */
  #worked(run) {
    const count = run.steps.filter((s) => s.kind === "call").length;
    const time = format(gettext("Worked %(time)s"), { time: duration(run.elapsed ?? 0) });
    return `${time} · ${ngettext("%(count)s step", "%(count)s steps", count)}`;
  }

  /** @param {Run} run */
  #working(run) {
    const open = run.steps.findLast((s) => s.state === "running");
    const words = run.status === "queued" ? (run.reason ? gettext("Waiting for the model") : gettext("Starting")) : open ? format(gettext("Using %(tool)s"), { tool: open.tool }) : phaseWords(run);
    return `${words} · ${duration(seconds(run.started))}`;
  }

  /** @param {Step} step */
  #line(step) {
    const drawn = `${step.state}|${step.elapsed}`;
    const known = this.lines.get(step.key);
    if (known?.drawn === drawn) return;
    const element = h("li", {}, step.kind === "note" ? note(step) : call(step));
    if (known) {
      const open = known.element.querySelector("details")?.open;
      known.element.replaceWith(element);
      if (open) one("details", element).setAttribute("open", "");
    } else {
      this.list.append(element);
    }
    this.lines.set(step.key, { element, drawn });
  }
}

/** @param {number} since */
const seconds = (since) => Math.max(0.1, (Date.now() - since) / 1000);

/** @param {Run} run */
function phaseWords(run) {
  switch (run.phase) {
    case "selecting_tools": return gettext("Choosing tools");
    case "answering": return gettext("Writing the answer");
    default: return run.text ? gettext("Writing the answer") : gettext("Thinking");
  }
}

/** @param {Step} step */
function call(step) {
  const what = sentence(step.reasoning) || gist(step.args) || step.tool;
  const line = h("summary", {},
    h("span", { class: "step-state" }, icon(ICONS[step.state], step.state === "running" ? "spinning" : "")),
    h("span", { class: "what" }, what),
    h("span", { class: "tool" }, step.tool),
    h("span", { class: "visually-hidden" }, stateWords(step)),
    h("span", { class: "time" }, step.elapsed === null ? "" : duration(step.elapsed)));
  return h("details", { class: "step", "data-state": step.state, "data-step": step.key }, line, detail(step));
}

/** @param {Step} step */
function detail(step) {
  const box = h("div", { class: "step-detail" });
  const add = (/** @type {string} */ title, /** @type {Node} */ content) => box.append(h("section", {}, h("h4", {}, title), content));
  if (step.reasoning) add(gettext("Thought"), h("p", { class: "reasoning" }, step.reasoning));
  if (Object.keys(step.args ?? {}).length > 0) add(gettext("Given to the tool"), showValue(step.args));
  if (step.error) add(gettext("Error"), h("p", { class: "error-text" }, step.error));
  else if (step.state === "done") add(gettext("Result"), step.observation === "" ? h("p", {}, gettext("Nothing came back.")) : showValue(step.observation));
  return box;
}

/** @param {Step} step */
function note(step) {
  const words = step.tool === "inject"
    ? format(gettext("Read your message: “%(text)s”"), { text: sentence(step.text) })
    : format(gettext("Summed up %(count)s earlier messages"), { count: step.args.original_messages - step.args.kept_messages });
  return h("div", { class: "step" },
    h("div", { class: "step-line" }, h("span", { class: "step-state" }, icon(step.tool === "inject" ? "message-square" : "shrink")), h("span", { class: "what" }, words)));
}

/** @param {Step} step */
function stateWords(step) {
  return { running: gettext("running"), done: gettext("done"), failed: gettext("failed"), stopped: gettext("stopped") }[step.state];
}

/** The first sentence, short enough for a line. @param {string} text */
function sentence(text) {
  const first = text.trim().split(/(?<=[.!?])\s|\n/)[0] ?? "";
  return first.length > WHAT_CHARS ? `${first.slice(0, WHAT_CHARS - 1)}…` : first;
}
