/* The agent's work: a summary line, below it a line for each step, below that everything about the step. */

import { h, icon, one, setText } from "#app/dom.js";
import { duration, format, gettext, ngettext, percent } from "#app/i18n.js";
import { modeName } from "#chat/modes.js";
import { decisionWords, sentence, verdictWords } from "#chat/phrases.js";
import { PlanView } from "#chat/plan-view.js";
import { isEnded, open, pending } from "#chat/run-state.js";
import { gist, showValue } from "#chat/values.js";

/** @typedef {import("#chat/run-state.js").Run} Run @typedef {import("#chat/run-state.js").Step} Step */

/** @type {Object<string, string>} */
const ICONS = { running: "loader-circle", waiting: "clock", done: "circle-check", failed: "circle-x", stopped: "circle-stop" };
/** @type {Object<string, string>} */
const NOTES = { inject: "message-square", compact: "shrink", resumed: "rotate-ccw", model: "triangle-alert", verdict: "scale" };
/** @type {Object<string, string>} */
const DECISIONS = { approved: "circle-check", rejected: "circle-x", expired: "clock", superseded: "undo-2", pending: "clock" };

export class Timeline {
  /** @param {HTMLDetailsElement} root */
  constructor(root) {
    this.root = root;
    this.summary = one(".summary-text", root);
    this.list = one(".steps", root);
    this.plan = new PlanView(one("[data-plan]", root));
    this.route = one("[data-route]", root);
    /** @type {Map<string, {element: HTMLElement, drawn: string}>} */
    this.lines = new Map();
    this.touched = false;
    root.querySelector("summary")?.addEventListener("click", () => { this.touched = true; });
  }

  /** @param {Run} run */
  update(run) {
    const ended = isEnded(run);
    this.plan.update(run);
    this.#showRoute(run);
    this.root.hidden = run.steps.length === 0 && run.plans.length === 0 && this.route.hidden && ended;
    setText(this.summary, ended ? this.#worked(run) : this.#working(run));
    this.#mark(ended ? "chevron" : run.status === "waiting" ? "waiting" : "spinning");
    if (!this.touched) this.root.open = run.steps.length + run.plans.length > 0 && !ended && run.text === "";
    for (const step of run.steps) this.#line(step, step.state === "running" && run.status === "waiting" ? "waiting" : step.state);
  }

  /** Elapsed seconds of what is going on; called while it is. @param {Run} run */
  tick(run) {
    setText(this.summary, this.#working(run));
    if (run.status === "waiting") return;
    this.plan.tick();
    for (const step of run.steps) {
      if (step.state !== "running") continue;
      const time = this.lines.get(step.key)?.element.querySelector(".time");
      if (time) setText(time, duration(seconds(step.at)));
    }
  }

  /** Which way was chosen for the question, and why. @param {Run} run */
  #showRoute({ mode, route }) {
    this.route.hidden = mode !== "auto" || !route;
    if (!route) return;
    const words = route.error ? gettext("Way of working: %(mode)s, as none could be chosen") : gettext("Way of working: %(mode)s – %(reason)s");
    setText(one("[data-words]", this.route), format(words, { mode: modeName(route.mode), reason: route.reason ?? "" }));
  }

  /** @param {"chevron" | "waiting" | "spinning"} kind */
  #mark(kind) {
    const old = one("summary > .icon", this.root);
    if (old.matches(`.${kind}`)) return;
    old.replaceWith(icon({ chevron: "chevron-right", waiting: "clock", spinning: "loader-circle" }[kind], kind));
  }

  /** @param {Run} run */
  #worked(run) {
    const count = run.steps.filter((s) => s.kind === "call").length;
    const time = format(gettext("Worked %(time)s"), { time: duration(run.elapsed ?? 0) });
    return `${time} · ${ngettext("%(count)s step", "%(count)s steps", count)}`;
  }

  /** @param {Run} run */
  #working(run) {
    if (run.status === "waiting") return waitingWords(run);
    const open = run.steps.findLast((s) => s.state === "running");
    const words = run.status === "queued" ? queuedWords(run) : open ? format(gettext("Using %(tool)s"), { tool: open.tool }) : phaseWords(run);
    return `${words} · ${duration(seconds(run.started))}`;
  }

  /** @param {Step} step @param {string} state as it is shown */
  #line(step, state) {
    const drawn = `${state}|${step.elapsed}|${progressWords(step, state)}`;
    const known = this.lines.get(step.key);
    if (known?.drawn === drawn) return;
    const element = h("li", {}, step.kind === "note" ? note(step) : call(step, state));
    if (known) {
      const open = known.element.querySelector("details")?.open;
      known.element.replaceWith(element);
      if (open) one("details", element).setAttribute("open", "");
    } else {
      (step.part ? this.plan.list(step.part) : this.list).append(element);
    }
    this.lines.set(step.key, { element, drawn });
  }
}

/** @param {number} since */
const seconds = (since) => Math.max(0.1, (Date.now() - since) / 1000);

/** @param {Run} run */
function queuedWords(run) {
  if (run.reason) return gettext("Waiting for the model");
  if (run.phase === "interrupted") return gettext("Interrupted; it goes on by itself");
  return run.steps.length > 0 ? gettext("Going on") : gettext("Starting");
}

/** @param {Run} run */
function waitingWords(run) {
  if (run.doubt) return gettext("Waiting for you: the outcome of a call is unknown");
  if (open(run).length) return gettext("Waiting for your answer");
  const count = pending(run).length;
  return count ? ngettext("Waiting for your approval", "Waiting for %(count)s approvals", count) : gettext("Waiting for a person to decide");
}

/** @param {Run} run */
function phaseWords(run) {
  switch (run.phase) {
    case "selecting_tools": return gettext("Choosing tools");
    case "answering": return gettext("Writing the answer");
    case "routing": return gettext("Choosing the way of working");
    case "planning": return gettext("Planning");
    case "replanning": return gettext("Planning anew");
    case "analyzing": return gettext("Judging the results");
    case "evaluating": return gettext("Checking the draft");
    default: return run.text ? gettext("Writing the answer") : gettext("Thinking");
  }
}

/** @param {Step} step @param {string} state as it is shown */
function call(step, state) {
  const what = sentence(step.reasoning) || gist(step.args) || step.tool;
  const line = h("summary", {},
    h("span", { class: "step-state" }, icon(ICONS[state], state === "running" ? "spinning" : "")),
    h("span", { class: "what" }, what),
    h("span", { class: "tool" }, step.tool),
    h("span", { class: "visually-hidden" }, stateWords(state)),
    h("span", { class: "how-far" }, progressWords(step, state)),
    h("span", { class: "time" }, step.elapsed === null ? "" : duration(step.elapsed)));
  return h("details", { class: "step", "data-state": state, "data-step": step.key }, line, detail(step));
}

/** What its server says of a call that is going on. @param {Step} step @param {string} state as it is shown */
function progressWords({ progress }, state) {
  if (!progress || state !== "running") return "";
  const { done, total, message } = progress;
  const far = total ? percent(Math.min(1, Math.max(0, done / total))) : "";
  return [far, message].filter(Boolean).join(" · ");
}

/** @param {Step} step */
function detail(step) {
  const box = h("div", { class: "step-detail" });
  const add = (/** @type {string} */ title, /** @type {Node} */ content) => box.append(h("section", {}, h("h4", {}, title), content));
  if (step.reasoning) add(gettext("Thought"), h("p", { class: "reasoning" }, step.reasoning));
  if (Object.keys(step.args ?? {}).length > 0) add(gettext("Given to the tool"), showValue(step.args));
  if (step.error) add(gettext("Error"), h("p", { class: "error-text" }, step.error));
  if (step.error.includes("“My connections”")) box.append(h("p", {}, h("a", { class: "button button-small", href: "/connections/" }, gettext("My connections"))));
  if (!step.error && step.state === "done") add(gettext("Result"), step.observation === "" ? h("p", {}, gettext("Nothing came back.")) : showValue(step.observation));
  return box;
}

/** @param {Step} step */
function note(step) {
  const symbol = step.tool === "approval" ? DECISIONS[step.args.status] : NOTES[step.tool];
  return h("div", { class: "step", "data-step": step.key },
    h("div", { class: "step-line" }, h("span", { class: "step-state" }, icon(symbol)), h("span", { class: "what" }, noteWords(step))));
}

/** @param {Step} step */
function noteWords({ tool, text, args }) {
  switch (tool) {
    case "inject": return format(gettext("Read your message: “%(text)s”"), { text: sentence(text) });
    case "approval": return decisionWords(args);
    case "verdict": return `${verdictWords(args.verdict)} ${text}`.trim();
    case "model": return format(gettext("%(from)s did not answer; %(to)s took over"), args);
    case "resumed": return gettext("Went on after an interruption");
    default: return format(gettext("Summed up %(count)s earlier messages"), { count: args.original_messages - args.kept_messages });
  }
}

/** @param {string} state */
function stateWords(state) {
  switch (state) {
    case "running": return gettext("running");
    case "waiting": return gettext("waiting");
    case "done": return gettext("done");
    case "failed": return gettext("failed");
    default: return gettext("stopped");
  }
}
