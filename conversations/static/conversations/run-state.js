/* What a page knows of a run: a fold over its events. Applying one twice, or an old one late, changes nothing. */

import { endPlans, foldPhase, foldPlan } from "#chat/plan-state.js";

/**
 * @typedef {{verdict: "pass" | "fail" | "needs_human", reasons: string[]}} Verdict what a judge said of a draft
 * @typedef {{run: string, seq?: number, channel: string, data: any, at?: string}} Envelope
 * @typedef {{kind: "call" | "note", key: string, iteration: number, part: string, tool: string, args: any, reasoning: string, text: string,
 *   state: "running" | "done" | "failed" | "stopped", observation: any, error: string, elapsed: number | null, files: ToolFile[], at: number,
 *   progress: {done: number, total: number | null, message: string} | null}} Step
 * @typedef {{id?: string, filename: string, content_type: string, size: number}} ToolFile a file that a tool made
 * @typedef {{id: string, status: "pending" | "approved" | "rejected" | "expired" | "superseded", tool: string, args: any, expires: string,
 *   comment: string, approvers: string, why: string, whole: boolean, verdict?: Verdict | null}} Approval a call that waited or waits for a person's word
 * @typedef {{id: string, run: string, status: string, source: string, text: string, fields: any, url: string, expires: string}} Inquiry
 *   a question of the agent or of a tool; `fields` is a JSON Schema
 * @typedef {{run: string, call: string, tool: string, args: any}} Doubt a call of which nobody saw the end
 * @typedef {{id: string, seq: number, status: string, reason: string, error: string, retryable: boolean, phase: string, told: string,
 *   mode: string, route: {mode: string, reason?: string, error?: string} | null, plans: import("#chat/plan-state.js").Plan[], planReason: string, verdict: Verdict | null,
 *   steps: Step[], approvals: Approval[], inquiries: Inquiry[], doubt: Doubt | null, read: string[],
 *   reasoning: Map<number | string, string>, text: string, length: number, attempt: number, streaming: boolean, started: number,
 *   problems: {filename: string, message: string}[], elapsed: number | null, iterations: number, tokens: number, cost: number, model: string, why: string, messageId: string}} Run
 */

/** The name under which a signature is asked for, in place of a tool's. */
export const SIGN = "publish_answer";

const ENDED = new Set(["completed", "failed", "cancelled"]);

/**
 * @param {string} id
 * @param {Partial<Run>} [known]
 * @returns {Run}
 */
export function createRun(id, known = {}) {
  return {
    id, seq: 0, status: "queued", reason: "", error: "", retryable: true, phase: "", told: "", mode: "", route: null, plans: [], planReason: "", verdict: null, steps: [], approvals: [], inquiries: [], doubt: null, read: [], problems: [],
    reasoning: new Map(), text: "", length: 0, attempt: 0, streaming: false, started: Date.now(), elapsed: null, iterations: 0, tokens: 0, cost: 0, model: "", why: "", messageId: "",
    ...known,
  };
}

/** @param {Run} run */
export const isEnded = (run) => ENDED.has(run.status);

/** What a person is asked about now. @param {Run} run */
export const pending = (run) => run.approvals.filter((a) => a.status === "pending");

/** What a person is asked to answer now. @param {Run} run */
export const open = (run) => run.inquiries.filter((i) => i.status === "pending");

/**
 * A run that waited, or whose worker let go of it, is in the queue again. No event of the run says so.
 * @param {Run} run
 */
export function requeued(run) {
  if (run.status === "running") run.phase = "interrupted";
  if (!isEnded(run)) Object.assign(run, { status: "queued", reason: "", doubt: null });
}

/**
 * @param {Run} run
 * @param {Envelope} envelope
 * @returns {"applied" | "known" | "gap"} "gap": something before it is missing; ask for it and apply this one later
 */
export function apply(run, envelope) {
  if (envelope.seq === undefined) return envelope.channel === "answer" ? delta(run, envelope.data) : "known";
  if (envelope.seq <= run.seq) return "known";
  if (envelope.seq > run.seq + 1) return "gap";
  fold(run, envelope);
  return "applied";
}

/**
 * Takes an event whatever its number; for histories, in which some kinds are left out.
 * @param {Run} run
 * @param {Envelope} envelope
 */
export function fold(run, envelope) {
  run.seq = envelope.seq ?? run.seq;
  const at = envelope.at ? Date.parse(envelope.at) : Date.now();
  channels[envelope.channel]?.(run, envelope.data, at);
}

/**
 * The answer so far, as the server has it. Older never replaces newer. All events up to it were sent before it.
 * @param {Run} run
 * @param {{seq: number, status?: string, answer?: {text: string, attempt: number}}} snapshot
 * @returns {"applied" | "gap"}
 */
export function applySnapshot(run, snapshot) {
  if (isEnded(run)) return "applied"; // the end says the whole answer, and its state is the last one
  const { text = "", attempt = 0 } = snapshot.answer ?? {};
  const length = [...text].length;
  if (attempt > run.attempt || (attempt === run.attempt && length > run.length)) {
    Object.assign(run, { text, length, attempt, streaming: text !== "" });
  }
  if (snapshot.seq > run.seq) return "gap";
  if (snapshot.seq === run.seq && run.status === "waiting" && snapshot.status === "queued") requeued(run);
  return "applied";
}

/**
 * @param {Run} run
 * @param {any} data
 */
function delta(run, data) {
  if (isEnded(run) || data.status !== "delta" || data.attempt < run.attempt) return "known";
  if (data.attempt > run.attempt) Object.assign(run, { text: "", length: 0, attempt: data.attempt });
  if (data.offset > run.length) return "gap";
  const fresh = [...data.content].slice(run.length - data.offset); // offsets count characters, not UTF-16 units
  if (fresh.length === 0) return "known";
  Object.assign(run, { text: run.text + fresh.join(""), length: run.length + fresh.length, streaming: true, phase: "" });
  return "applied";
}

/** @type {Object<string, (run: Run, data: any, at: number) => void>} */
const channels = {
  run(run, data, at) {
    const again = data.status === "running" && run.told === "running";
    if (again) addStep(run, { kind: "note", key: `resumed-${run.seq}`, tool: "resumed", state: "done", at });
    else if (data.status === "running") run.started = at;
    const { status, reason = "", request } = data;
    Object.assign(run, { status, reason, told: status, phase: "" });
    run.doubt = reason === "reconciliation" ? { run: run.id, call: request.call, tool: request.tool_name, args: request.tool_args } : null;
    run.mode = data.mode ?? run.mode;
    bind(run, data.model);
  },

  model(run, data, at) {
    bind(run, data.model);
    addStep(run, { kind: "note", key: `model-${run.seq}`, tool: "model", args: data, state: "done", at });
  },

  approval(run, { approval_id: id, status, tool_name: tool, tool_args: args, expires_at: expires, comment = "", approvers = "", truncated }, at) {
    const values = { status, tool, args, expires, comment, approvers, whole: !truncated };
    const known = run.approvals.find((a) => a.id === id);
    if (known) Object.assign(known, values);
    else run.approvals.push({ id, why: tool === SIGN ? "" : ([...run.reasoning.values()].at(-1) ?? ""), verdict: run.verdict, ...values });
    if (status !== "pending") noteDecision(run, /** @type {Approval} */ (run.approvals.find((a) => a.id === id)), at);
    if (run.status === "waiting" && run.reason === "approval" && pending(run).length === 0) requeued(run);
  },

  question(run, { question_id: id, status, source, text, fields, url, expires_at: expires }) {
    const known = run.inquiries.find((i) => i.id === id);
    if (known) known.status = status;
    else run.inquiries.push({ id, run: run.id, status, source, text, fields, url, expires });
    if (run.status === "waiting" && run.reason === "input" && open(run).length === 0) requeued(run);
  },

  step(run, data, at) {
    if (run.status === "queued") run.status = "running";
    if (data.type === "thinking") {
      run.phase = data.status === "start" ? "thinking" : "";
      if (data.status === "done" && data.reasoning) run.reasoning.set(place(data), data.reasoning);
    } else if (data.type === "iteration") {
      const step = run.steps.find((s) => s.key === data.call_id) ?? addCall(run, data, at);
      if (data.status === "done") {
        const { observation = "", error, iter_elapsed: elapsed, artifacts = [] } = data;
        Object.assign(step, { observation, error: error ?? "", elapsed: elapsed ?? null, files: artifacts });
        step.state = !error ? "done" : error === "Stopped" ? "stopped" : "failed";
      }
    } else if (data.type === "progress") {
      const step = run.steps.find((s) => s.key === data.call_id);
      if (step) step.progress = { done: data.done, total: data.total, message: data.message };
    } else if (data.type === "answer") {
      run.phase = "answering";
    }
  },

  answer(run, data) {
    if (data.status === "start" && data.attempt > run.attempt) Object.assign(run, { text: "", length: 0, attempt: data.attempt, streaming: true });
    if (data.status === "done") run.streaming = false;
  },

  phase(run, data) {
    foldPhase(run, data);
  },

  verdict(run, data, at) {
    run.verdict = data;
    addStep(run, { kind: "note", key: `verdict-${run.seq}`, tool: "verdict", args: data, text: data.reasons.join(" "), state: "done", at });
  },

  plan(run, data, at) {
    if (run.status === "queued") run.status = "running";
    foldPlan(run, data, at);
  },

  files(run, data) {
    run.problems = data.problems;
  },

  compact(run, data, at) {
    addNote(run, "compact", data, at);
  },

  inject(run, data, at) {
    if (data.message_id) run.read.push(data.message_id);
    addNote(run, "inject", data, at);
  },

  error(run, data) {
    run.error = data.message;
    run.retryable = data.retryable !== false;
  },

  done(run, data) {
    for (const step of run.steps) if (step.state === "running") step.state = "stopped";
    for (const approval of pending(run)) approval.status = "superseded";
    endPlans(run);
    for (const inquiry of open(run)) inquiry.status = "superseded";
    run.doubt = null;
    const { status, reason = "", iterations = run.iterations, elapsed = run.elapsed } = data;
    Object.assign(run, { status, reason, iterations, elapsed, streaming: false, phase: "", messageId: data.message_id ?? run.messageId });
    run.tokens = (data.usage?.input_tokens ?? 0) + (data.usage?.output_tokens ?? 0) || run.tokens;
    run.cost = data.cost ?? run.cost;
    if (typeof data.answer === "string") Object.assign(run, { text: data.answer, length: [...data.answer].length });
  },
};

/** What a run's events can be about. */
export const CHANNELS = Object.keys(channels);

/**
 * @param {Run} run
 * @param {any} data
 * @param {number} at
 */
function addCall(run, data, at) {
  const part = data.step_id ?? "";
  const first = !run.steps.some((s) => s.kind === "call" && s.iteration === data.iteration && s.part === part);
  const reasoning = first ? (run.reasoning.get(place(data)) ?? "") : "";
  return addStep(run, { kind: "call", key: data.call_id, iteration: data.iteration, part, tool: data.tool_name, args: data.tool_args ?? {}, reasoning, at });
}

/**
 * @param {Run} run
 * @param {Approval} approval
 * @param {number} at
 */
function noteDecision(run, approval, at) {
  const key = `approval-${approval.id}`;
  const values = /** @type {const} */ ({ kind: "note", key, tool: "approval", args: approval, text: approval.comment, state: "done", at });
  if (!run.steps.some((s) => s.key === key)) addStep(run, values);
}

/**
 * @param {Run} run
 * @param {string} tool
 * @param {any} data
 * @param {number} at
 */
function addNote(run, tool, data, at) {
  addStep(run, { kind: "note", key: `${tool}-${run.seq}`, tool, args: data, text: data.content ?? "", state: "done", at });
}

/**
 * @param {Run} run
 * @param {Partial<Step>} values
 * @returns {Step}
 */
function addStep(run, values) {
  const step = /** @type {Step} */ ({ kind: "call", key: "", iteration: 0, part: "", tool: "", args: {}, reasoning: "", text: "", state: "running", observation: "", error: "", elapsed: null, files: [], at: 0, progress: null, ...values });
  run.steps.push(step);
  return step;
}

/** Turns of the loop are counted in each part of a plan. @param {any} data */
const place = (data) => (data.step_id ? `${data.step_id}/${data.iteration}` : data.iteration);

/** @param {Run} run @param {any} model its name, or what the run was bound to and why */
function bind(run, model) {
  run.model = modelName(model) || run.model;
  run.why = model?.reason || run.why;
}

/** @param {any} model */
const modelName = (model) => (typeof model === "string" ? model : model?.label || model?.name || "");
