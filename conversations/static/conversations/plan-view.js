/* A run's plan as a graph from left to right; in a narrow place, and for screen readers, as a list. */

import { h, icon, one, setText } from "#app/dom.js";
import { duration, format, gettext, locale } from "#app/i18n.js";
import { depths } from "#chat/plan-state.js";
import { showValue } from "#chat/values.js";

/** @typedef {import("#chat/plan-state.js").Plan} Plan @typedef {import("#chat/plan-state.js").PlanStep} PlanStep */

/** @type {Object<string, string>} */
const ICONS = { pending: "circle-dashed", running: "loader-circle", done: "circle-check", failed: "circle-x", skipped: "circle-slash" };
const SVG = "http://www.w3.org/2000/svg";

export class PlanView {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {Map<number, Round>} */
    this.rounds = new Map();
    /** @type {Map<string, HTMLElement>} by step: what its agent did */
    this.inner = new Map();
  }

  /** @param {import("#chat/run-state.js").Run} run */
  update({ plans }) {
    this.root.hidden = plans.length === 0;
    for (const plan of plans) {
      let round = this.rounds.get(plan.version);
      if (!round) {
        for (const earlier of this.rounds.values()) earlier.root.open = false;
        round = new Round(plan, (id) => this.list(id));
        this.rounds.set(plan.version, round);
        this.root.append(round.root);
      }
      round.update(plan);
    }
  }

  /** Elapsed seconds of steps that are going on. */
  tick() {
    for (const round of this.rounds.values()) round.tick();
  }

  /** The list of a step's inner steps. @param {string} id */
  list(id) {
    const known = this.inner.get(id) ?? h("ol", { class: "steps" });
    this.inner.set(id, known);
    return known;
  }
}

class Round {
  /** @param {Plan} plan @param {(id: string) => HTMLElement} inner */
  constructor(plan, inner) {
    this.plan = plan;
    this.inner = inner;
    this.selected = "";
    /** What the detail shows: it is drawn anew only when that has changed. */
    this.drawn = "";
    this.count = h("span", { class: "plan-count" });
    this.edges = document.createElementNS(SVG, "svg");
    this.edges.setAttribute("class", "plan-edges");
    this.edges.setAttribute("aria-hidden", "true");
    this.steps = h("ol", { class: "plan-steps" });
    this.detail = h("div", { class: "plan-detail", hidden: true });
    this.judged = h("p", { class: "plan-judged", hidden: true });
    const title = plan.version === 1 ? gettext("Plan") : format(gettext("Plan %(number)s"), { number: plan.version });
    this.root = /** @type {HTMLDetailsElement} */ (h("details", { class: "plan-round", open: true, "data-kind": plan.kind },
      h("summary", {}, icon("chevron-right", "chevron"), h("strong", {}, title), this.count),
      ...(plan.reason ? [h("p", { class: "plan-reason" }, format(gettext("Made anew: %(reason)s"), { reason: plan.reason }))] : []),
      h("div", { class: "plan-frame" }, /** @type {any} */ (this.edges), this.steps),
      this.detail, this.judged));
    this.#build();
    new ResizeObserver(() => this.#connect()).observe(this.steps);
  }

  /** @param {Plan} plan */
  update(plan) {
    this.plan = plan;
    const done = plan.steps.filter((s) => s.state === "done").length;
    setText(this.count, format(gettext("%(done)s of %(all)s done"), { done, all: plan.steps.length }));
    for (const step of plan.steps) this.#state(step);
    if (this.selected) this.#show(this.selected);
    if (plan.judged) setText(this.judged, judgement(plan.judged));
    this.judged.hidden = !plan.judged?.reasoning && !plan.judged?.achieved;
  }

  tick() {
    for (const step of this.plan.steps.filter((s) => s.state === "running" && s.at)) setText(one(".time", this.#node(step.id)), time(step));
  }

  #build() {
    const columns = depths(this.plan);
    const tied = this.plan.steps.some((s) => s.after.length > 0);
    this.steps.dataset.tied = String(tied);
    /** @type {number[]} how many stand in each column */
    const filled = [];
    /** @type {number[]} */
    const sizes = [];
    for (const column of columns.values()) sizes[column] = (sizes[column] ?? 0) + 1;
    const rows = Math.max(...sizes);
    for (const step of this.plan.steps) {
      const item = h("li", { "data-step": step.id }, this.#button(step));
      const column = columns.get(step.id) ?? 0;
      filled[column] = (filled[column] ?? Math.floor((rows - sizes[column]) / 2)) + 1; // columns stand in the middle
      if (tied) Object.assign(item.style, { gridColumn: String(column + 1), gridRow: String(filled[column]) });
      this.steps.append(item);
    }
  }

  /** @param {PlanStep} step */
  #button(step) {
    const after = step.after.length ? format(gettext("after %(steps)s"), { steps: step.after.join(", ") }) : "";
    const button = h("button", { type: "button", "aria-expanded": "false" },
      h("span", { class: "step-state" }, icon(ICONS[step.state])),
      h("span", { class: "plan-task" }, step.task),
      h("span", { class: "plan-meta" },
        h("span", { class: "plan-id" }, step.id),
        ...(step.tool ? [h("span", { class: "tool" }, step.tool)] : []),
        ...(after ? [h("span", { class: "plan-after" }, after)] : []),
        h("span", { class: "plan-state visually-hidden" }),
        h("span", { class: "time" })));
    button.addEventListener("click", () => this.#select(this.selected === step.id ? "" : step.id));
    return button;
  }

  /** @param {PlanStep} step */
  #state(step) {
    const node = this.#node(step.id);
    if (node.dataset.state !== step.state) {
      node.dataset.state = step.state;
      one(".step-state", node).replaceChildren(icon(ICONS[step.state], step.state === "running" ? "spinning" : ""));
      setText(one(".plan-state", node), stateWords(step.state));
    }
    setText(one(".time", node), time(step));
  }

  /** @param {string} id */
  #node(id) {
    return /** @type {HTMLElement} */ (this.steps.children[this.plan.steps.findIndex((s) => s.id === id)]);
  }

  /** @param {string} id */
  #select(id) {
    this.selected = id;
    for (const step of this.plan.steps) one("button", this.#node(step.id)).setAttribute("aria-expanded", String(step.id === id));
    this.detail.hidden = !id;
    this.drawn = "";
    if (id) this.#show(id);
  }

  /** Everything about one step, drawn anew only when something has changed. @param {string} id */
  #show(id) {
    const step = this.plan.steps.find((s) => s.id === id);
    const drawn = `${id}|${step?.state}|${step?.result.length}`;
    if (!step || drawn === this.drawn) return;
    this.drawn = drawn;
    const parts = [h("h4", {}, `${step.id} · ${stateWords(step.state)}`), h("p", {}, step.task)];
    if (step.message) parts.push(h("p", { class: step.state === "failed" ? "error-text" : "" }, step.message));
    if (step.result) parts.push(showValue(step.result));
    this.detail.replaceChildren(...parts, this.inner(id));
  }

  /** Lines from each step to those that wait for it. */
  #connect() {
    const { scrollWidth: width, scrollHeight: height } = this.steps;
    this.edges.setAttribute("width", String(width));
    this.edges.setAttribute("height", String(height));
    const paths = this.plan.steps.flatMap((step) => step.after.map((id) => this.#edge(id, step.id)));
    this.edges.replaceChildren(...paths.filter((path) => path !== null));
  }

  /** @param {string} from @param {string} to @returns {SVGPathElement | null} */
  #edge(from, to) {
    const [start, end] = [this.#node(from), this.#node(to)];
    if (!start || !end) return null;
    const [x1, y1] = [start.offsetLeft + start.offsetWidth, start.offsetTop + start.offsetHeight / 2];
    const [x2, y2] = [end.offsetLeft, end.offsetTop + end.offsetHeight / 2];
    const bend = Math.max(12, (x2 - x1) / 2);
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`);
    return path;
  }
}

/** @param {PlanStep} step */
function time(step) {
  if (step.state === "running") return step.at ? duration(Math.max(0.1, (Date.now() - step.at) / 1000)) : "";
  return step.elapsed === null ? "" : duration(step.elapsed);
}

/** @param {{achieved: boolean, confidence: number, reasoning: string}} judged */
function judgement({ achieved, confidence, reasoning }) {
  const sure = confidence.toLocaleString(locale, { style: "percent", maximumFractionDigits: 0 });
  const words = achieved ? gettext("Judged: the goal is reached (%(sure)s sure). %(reason)s") : gettext("Judged: the goal is not reached yet (%(sure)s sure). %(reason)s");
  return format(words, { sure, reason: reasoning }).trim();
}

/** @param {string} state */
function stateWords(state) {
  switch (state) {
    case "pending": return gettext("not begun");
    case "running": return gettext("running");
    case "done": return gettext("done");
    case "failed": return gettext("failed");
    default: return gettext("skipped");
  }
}
