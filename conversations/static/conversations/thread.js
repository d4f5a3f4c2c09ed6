/* The thread: which entries there are and in which order. Adding something twice changes nothing. */

import { one } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { Answer } from "#chat/answer.js";
import { Question } from "#chat/question.js";
import { createRun, fold, isEnded } from "#chat/run-state.js";

const TICK_MS = 100;

export class Thread {
  /**
   * @param {any[]} runs what the page knows of the runs it shows
   * @param {{retry: (run: string) => void}} actions
   */
  constructor(runs, actions) {
    this.root = one(".thread");
    this.actions = actions;
    /** @type {Map<string, Answer>} by run */
    this.answers = new Map();
    /** @type {Map<string, Question>} by client id, then by message id */
    this.questions = new Map();
    const known = new Map(runs.map((run) => [run.id, run]));
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll(".question"))) {
      this.questions.set(element.dataset.message ?? "", new Question(element));
    }
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll(".answer-block"))) {
      const row = known.get(element.dataset.run);
      if (row) this.answers.set(row.id, new Answer(fromHistory(row), element, actions.retry));
    }
    setInterval(() => this.#tick(), TICK_MS);
  }

  /** The run that is going on, if one is. */
  get active() {
    return [...this.answers.values()].find((answer) => !isEnded(answer.run)) ?? null;
  }

  get isEmpty() {
    return this.questions.size === 0 && this.answers.size === 0;
  }

  /**
   * @param {{clientId: string, id?: string, content: string, injected?: boolean, run?: string}} message
   * @returns {Question}
   */
  question({ clientId, id = "", content, injected = false, run = "" }) {
    const known = (id && this.questions.get(id)) || (clientId && this.questions.get(clientId));
    const question = known || new Question(null, content);
    if (clientId) this.questions.set(clientId, question);
    if (id) {
      this.questions.set(id, question);
      question.setMessage(id);
      question.setState("sent", injected ? gettext("Added while it was working") : "");
    }
    if (!known) {
      document.querySelector(".welcome")?.remove();
      this.root.hidden = false;
      // A message is read by the run that goes on, or has just started it: it stands before that run's work.
      const before = (run ? this.answers.get(run) : this.active)?.element ?? null;
      this.root.insertBefore(question.element, before);
    }
    return question;
  }

  /**
   * @param {string} id
   * @returns {Answer}
   */
  answer(id) {
    const known = this.answers.get(id);
    if (known) return known;
    this.#dropFailed();
    const answer = new Answer(createRun(id), null, this.actions.retry);
    this.answers.set(id, answer);
    this.root.hidden = false;
    this.root.append(answer.element);
    return answer;
  }

  /** @param {string} clientId */
  remove(clientId) {
    this.questions.get(clientId)?.element.remove();
    this.questions.delete(clientId);
  }

  /** A new attempt takes the place of a run that ended without a word. */
  #dropFailed() {
    const last = this.root.lastElementChild;
    const answer = last instanceof HTMLElement ? this.answers.get(last.dataset.run ?? "") : undefined;
    if (!answer || answer.run.text || answer.run.status === "completed" || !isEnded(answer.run)) return;
    answer.element.remove();
    this.answers.delete(answer.run.id);
  }

  #tick() {
    const answer = this.active;
    if (answer && !document.hidden) answer.timeline.tick(answer.run);
  }
}

/** @param {any} row */
function fromHistory({ events, seq, started, ...row }) {
  const run = createRun(row.id);
  for (const event of events) fold(run, event);
  return Object.assign(run, row, { seq, started: Date.parse(started) });
}
