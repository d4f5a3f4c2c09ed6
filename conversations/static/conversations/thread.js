/* The thread: which entries there are and in which order. Adding something twice changes nothing. */

import { one } from "#app/dom.js";
import { Answer, showWithoutRun } from "#chat/answer.js";
import { Question } from "#chat/question.js";
import { QuestionEditor } from "#chat/question-editor.js";
import { createRun, fold, isEnded } from "#chat/run-state.js";

const TICK_MS = 100;

export class Thread {
  /**
   * @param {any[]} runs what the page knows of the runs it shows
   * @param {{retry: (run: string) => void, changed: (answer: Answer) => void, takeBack: (question: Question) => void, withdraw: (answer: Answer) => void,
   *   edit: (question: Question, content: string, files: string[], clientId: string) => Promise<string>}} actions
   */
  constructor(runs, actions) {
    this.root = one(".thread");
    this.actions = actions;
    /** @type {Map<string, Answer>} by run */
    this.answers = new Map();
    /** @type {Map<string, Question>} by client id, then by message id */
    this.questions = new Map();
    for (const element of this.#entries(this.root)) this.#enter(element, runs);
    this.offer();
    setInterval(() => this.#tick(), TICK_MS);
  }

  /**
   * Takes what it lacks from the thread as the server renders it.
   * @param {{element: ParentNode, runs: any[]} | null} rendered
   */
  take(rendered) {
    if (!rendered) return;
    /** @type {HTMLElement | null} */
    let before = null;
    for (const element of this.#entries(rendered.element)) {
      const known = this.answers.get(element.dataset.run ?? "") ?? this.#known(element);
      const entry = known?.element ?? this.#enter(document.importNode(element, true), rendered.runs);
      if (!entry) continue;
      if (!known && before) before.after(entry);
      else if (!known) this.root.append(entry);
      before = entry;
    }
    this.root.hidden = this.isEmpty;
    this.offer();
  }

  /** Shows what the server renders instead of what stands here. @param {{element: ParentNode, runs: any[]}} rendered */
  replace({ element, runs }) {
    this.answers.clear();
    this.questions.clear();
    this.root.replaceChildren(...[...element.children].map((child) => document.importNode(child, true)));
    for (const entry of this.#entries(this.root)) this.#enter(entry, runs);
    this.root.hidden = this.isEmpty;
    this.offer();
  }

  /** The id of the last message that the server has confirmed. */
  get last() {
    return [...this.#entries(this.root)].map((entry) => entry.dataset.message ?? "").filter(Boolean).at(-1) ?? "";
  }

  /** A message whose confirmation has not come yet is known by its writer's id. @param {HTMLElement} element that the server rendered */
  #known({ dataset: { message = "", client = "" } }) {
    return this.questions.get(message) ?? (client ? this.questions.get(client) : undefined);
  }

  /** @param {ParentNode} root @returns {NodeListOf<HTMLElement>} */
  #entries(root) {
    return root.querySelectorAll(".question, .answer-block");
  }

  /**
   * @param {HTMLElement} element that the server rendered
   * @param {any[]} runs what is known of the runs there
   * @returns {HTMLElement | null} null: a run without a record of it
   */
  #enter(element, runs) {
    if (element.matches(".question")) {
      const question = new Question(element);
      this.#keep(question.id, question);
      question.clientId = element.dataset.client ?? "";
      return element;
    }
    const row = runs.find((run) => run.id === element.dataset.run);
    if (row) this.answers.set(row.id, new Answer(fromHistory(row), element, this.actions));
    else if (!element.dataset.run && element.dataset.message) showWithoutRun(element);
    return row ? element : null;
  }

  /** The run that is going on, if one is. */
  get active() {
    return [...this.answers.values()].find((answer) => !isEnded(answer.run)) ?? null;
  }

  get isEmpty() {
    return this.questions.size === 0 && this.answers.size === 0;
  }

  /**
   * @param {{clientId: string, id?: string, content: string, files?: import("#chat/file-list.js").Attached[], injected?: boolean, run?: string}} message
   * @returns {Question}
   */
  question({ clientId, id = "", content, files = [], injected = false, run = "" }) {
    const known = (id && this.questions.get(id)) || (clientId && this.questions.get(clientId));
    const question = known || new Question(null, content, files);
    question.clientId ||= clientId;
    if (clientId) this.#keep(clientId, question);
    if (id) {
      this.#keep(id, question);
      question.setMessage(id);
      question.setState("sent", "");
      if (injected) question.run ||= run || (this.active?.run.id ?? "");
      else if (question.injected) this.#toNextTurn(question);
      question.injected = injected;
    }
    if (!known) {
      document.querySelector(".welcome")?.remove();
      this.root.hidden = false;
      // A message is read by the run that goes on, or has just started it: it stands before that run's work.
      const before = (run ? this.answers.get(run) : this.active)?.element ?? null;
      this.root.insertBefore(question.element, before);
    }
    this.offer();
    return question;
  }

  /** What can be done with messages sent meanwhile, while nobody has read them. */
  offer() {
    const run = this.active?.run;
    const waits = run?.status === "waiting" && run.reason === "approval";
    for (const question of this.injected) {
      const unread = run !== undefined && this.isUnread(question, run);
      question.offer({ unread, waits: unread && waits });
    }
  }

  /**
   * Whether a message sent meanwhile still waits to be read by this run.
   * @param {Question} question
   * @param {import("#chat/run-state.js").Run} run
   */
  isUnread(question, run) {
    const read = [...this.answers.values()].some((answer) => answer.run.read.includes(question.id));
    return !read && ["", run.id].includes(question.run);
  }

  /** Messages sent meanwhile, oldest first. */
  get injected() {
    return [...new Set(this.questions.values())].filter((q) => q.injected && q.id);
  }

  /** @param {string} key @param {Question} question */
  #keep(key, question) {
    this.questions.set(key, question);
    question.on("take-back", () => this.actions.takeBack(question));
    question.on("withdraw", () => this.active && this.actions.withdraw(this.active));
    question.editor ??= new QuestionEditor(question, (content, files, clientId) => this.actions.edit(question, content, files, clientId));
  }

  /** A message that its run did not read begins the next turn. @param {Question} question */
  #toNextTurn(question) {
    const next = [...this.answers.values()].find((a) => !isEnded(a.run) && a.run.id !== question.run);
    this.root.insertBefore(question.element, next?.element ?? null);
  }

  /**
   * @param {string} id
   * @returns {Answer}
   */
  answer(id) {
    const known = this.answers.get(id);
    if (known) return known;
    this.#dropFailed();
    const answer = new Answer(createRun(id), null, this.actions);
    this.answers.set(id, answer);
    this.root.hidden = false;
    this.root.append(answer.element);
    return answer;
  }

  /** @param {string} key client id or message id @returns {Question | undefined} */
  remove(key) {
    const question = this.questions.get(key);
    question?.element.remove();
    for (const [other, value] of this.questions) if (value === question) this.questions.delete(other);
    return question;
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
  Object.assign(run, row, { seq, started: Date.parse(started) });
  if (run.status !== "waiting") run.doubt = null;
  return run;
}
