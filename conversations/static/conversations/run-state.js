/* What a page knows of a run: a fold over its events. Applying one twice, or an old one late, changes nothing. */

/**
 * @typedef {{run: string, seq?: number, channel: string, data: any, at?: string}} Envelope
 * @typedef {{kind: "call" | "note", key: string, iteration: number, tool: string, args: any, reasoning: string, text: string,
 *   state: "running" | "done" | "failed" | "stopped", observation: any, error: string, elapsed: number | null, at: number}} Step
 * @typedef {{id: string, seq: number, status: string, reason: string, error: string, retryable: boolean, phase: string, steps: Step[],
 *   reasoning: Map<number, string>, text: string, length: number, attempt: number, streaming: boolean, started: number,
 *   elapsed: number | null, iterations: number, tokens: number, model: string, messageId: string}} Run
 */

const ENDED = new Set(["completed", "failed", "cancelled"]);

/**
 * @param {string} id
 * @param {Partial<Run>} [known]
 * @returns {Run}
 */
export function createRun(id, known = {}) {
  return {
    id, seq: 0, status: "queued", reason: "", error: "", retryable: true, phase: "", steps: [], reasoning: new Map(), text: "",
    length: 0, attempt: 0, streaming: false, started: Date.now(), elapsed: null, iterations: 0, tokens: 0, model: "", messageId: "",
    ...known,
  };
}

/** @param {Run} run */
export const isEnded = (run) => ENDED.has(run.status);

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
 * @param {{seq: number, answer?: {text: string, attempt: number}}} snapshot
 * @returns {"applied" | "gap"}
 */
export function applySnapshot(run, snapshot) {
  const { text = "", attempt = 0 } = snapshot.answer ?? {};
  const length = [...text].length;
  if (attempt > run.attempt || (attempt === run.attempt && length > run.length)) {
    Object.assign(run, { text, length, attempt, streaming: text !== "" });
  }
  return snapshot.seq > run.seq ? "gap" : "applied";
}

/**
 * @param {Run} run
 * @param {any} data
 */
function delta(run, data) {
  if (data.status !== "delta" || data.attempt < run.attempt) return "known";
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
    if (data.status === "running" && run.status !== "running") run.started = at;
    run.status = data.status;
    run.reason = data.reason ?? "";
    run.model = modelName(data.model) || run.model;
  },

  step(run, data, at) {
    if (data.type === "thinking") {
      run.phase = data.status === "start" ? "thinking" : "";
      if (data.status === "done" && data.reasoning) run.reasoning.set(data.iteration, data.reasoning);
    } else if (data.type === "iteration") {
      const step = run.steps.find((s) => s.key === data.call_id) ?? addCall(run, data, at);
      if (data.status === "done") {
        const { observation = "", error, iter_elapsed: elapsed } = data;
        Object.assign(step, { observation, error: error ?? "", elapsed: elapsed ?? null });
        step.state = !error ? "done" : error === "Stopped" ? "stopped" : "failed";
      }
    } else if (data.type === "answer") {
      run.phase = "answering";
    }
  },

  answer(run, data) {
    if (data.status === "start" && data.attempt > run.attempt) Object.assign(run, { text: "", length: 0, attempt: data.attempt, streaming: true });
    if (data.status === "done") run.streaming = false;
  },

  phase(run, data) {
    run.phase = data.phase;
  },

  compact(run, data, at) {
    addNote(run, "compact", data, at);
  },

  inject(run, data, at) {
    addNote(run, "inject", data, at);
  },

  error(run, data) {
    run.error = data.message;
    run.retryable = data.retryable !== false;
  },

  done(run, data) {
    for (const step of run.steps) if (step.state === "running") step.state = "stopped";
    const { status, reason = "", iterations = run.iterations, elapsed = run.elapsed } = data;
    Object.assign(run, { status, reason, iterations, elapsed, streaming: false, phase: "", messageId: data.message_id ?? run.messageId });
    run.tokens = (data.usage?.input_tokens ?? 0) + (data.usage?.output_tokens ?? 0) || run.tokens;
    if (typeof data.answer === "string") Object.assign(run, { text: data.answer, length: [...data.answer].length });
  },
};

/**
 * @param {Run} run
 * @param {any} data
 * @param {number} at
 */
function addCall(run, data, at) {
  const first = !run.steps.some((s) => s.kind === "call" && s.iteration === data.iteration);
  const reasoning = first ? (run.reasoning.get(data.iteration) ?? "") : "";
  return addStep(run, { kind: "call", key: data.call_id, iteration: data.iteration, tool: data.tool_name, args: data.tool_args ?? {}, reasoning, at });
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
  const step = /** @type {Step} */ ({ kind: "call", key: "", iteration: 0, tool: "", args: {}, reasoning: "", text: "", state: "running", observation: "", error: "", elapsed: null, at: 0, ...values });
  run.steps.push(step);
  return step;
}

/** @param {any} model */
const modelName = (model) => (typeof model === "string" ? model : model?.label || model?.name || "");
