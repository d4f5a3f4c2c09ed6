/* What a page knows of a run's plans: every version of them, as far as it is carried out. */

/**
 * @typedef {{id: string, task: string, tool: string, after: string[], state: "pending" | "running" | "done" | "failed" | "skipped",
 *   at: number, elapsed: number | null, result: string, message: string}} PlanStep
 * @typedef {{version: number, kind: string, reason: string, steps: PlanStep[], judged: {achieved: boolean, confidence: number, reasoning: string} | null}} Plan
 * @typedef {import("#chat/run-state.js").Run} Run
 */

/** @param {Run} run @param {any} data a plan, or what became of one of its steps @param {number} at */
export function foldPlan(run, data, at) {
  if (data.steps) {
    const steps = data.steps.map(stepOf);
    const plan = { version: data.version, kind: data.kind, reason: run.planReason, steps, judged: null };
    run.plans = [...run.plans.filter((p) => p.version !== plan.version), plan];
    return;
  }
  const step = planOf(run, data.version)?.steps.find((s) => s.id === data.step_id);
  if (!step) return;
  Object.assign(step, { state: data.status, elapsed: data.elapsed ?? null, result: data.result ?? "", message: data.message ?? "" });
  if (data.status === "running") step.at = at;
}

/** @param {Run} run @param {any} data */
export function foldPhase(run, data) {
  run.phase = data.phase;
  if (data.phase === "planning" || data.phase === "replanning") run.planReason = data.reason ?? "";
  if (data.phase === "routed") run.route = data;
  const plan = data.phase === "analyzed" ? planOf(run, data.version) : undefined;
  if (plan) plan.judged = { achieved: data.achieved, confidence: data.confidence, reasoning: data.reasoning };
}

/** Nothing goes on after the end of the run. @param {Run} run */
export function endPlans(run) {
  for (const step of run.plans.flatMap((plan) => plan.steps)) {
    if (step.state === "running" || step.state === "pending") step.state = "skipped";
  }
}

/** How many steps each one has before it: its column. @param {Plan} plan @returns {Map<string, number>} */
export function depths(plan) {
  /** @type {Map<string, number>} */
  const known = new Map();
  const byId = new Map(plan.steps.map((step) => [step.id, step]));
  /** @param {PlanStep} step @returns {number} */
  const depth = (step) => {
    if (!known.has(step.id)) {
      known.set(step.id, 0); // whatever a server sent, this comes to an end
      known.set(step.id, Math.max(0, ...step.after.map((id) => byId.get(id)).map((before) => (before ? depth(before) + 1 : 0))));
    }
    return known.get(step.id) ?? 0;
  };
  plan.steps.forEach(depth);
  return known;
}

/** @param {Run} run @param {number} version */
const planOf = (run, version) => run.plans.find((plan) => plan.version === version);

/** @param {any} data @returns {PlanStep} */
const stepOf = ({ id, task, tool_name: tool = "", tool_hint: hint = "", depends_on: after = [], status: state = "pending" }) =>
  ({ id, task, tool: tool || hint, after, state, at: 0, elapsed: null, result: "", message: "" });
