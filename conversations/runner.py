"""Drives the engine for one claimed run: rows in, events out, one of the ends of `Run.Status` at last."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from django.db import InterfaceError, OperationalError, transaction

from agentapp.database import in_thread
from agentapp.engine import (
    BadDraft,
    ChatModel,
    Event,
    InterruptQueue,
    LeftAlone,
    LimitReached,
    ModelChain,
    ModelError,
    ModelUnavailable,
    RunSuspended,
    UnknownOutcome,
)
from conversations.allotments import Allotted, Amount, draw
from conversations.answer import Answer, deliver
from conversations.appender import Appender
from conversations.asking import Asking
from conversations.binding import note_fallback
from conversations.claims import MAX_CRASHES, Claim
from conversations.crash_points import reach
from conversations.endings import record_broken_off
from conversations.errors import LeaseLost, ModelDisabled, PersonDisabled
from conversations.gate import Gate
from conversations.interrupting import Said, claim_interrupts, pictures_sent, waiting_interrupts
from conversations.journal import DatabaseJournal
from conversations.lifecycle import end_run, held, put_back, suspend
from conversations.model_failures import explain, failure_reason
from conversations.models import Call, Interrupt, Run
from conversations.modes import agent_for
from conversations.patience import patiently
from conversations.permission import Permissions, refusal
from conversations.preparation import Prepared, prepare, total_usage
from conversations.progress import ProgressOfCalls
from conversations.purse import Purse
from conversations.reading import Unread, read_documents, with_files_read
from conversations.reconciliation import unknown_call
from conversations.signing import NotSigned, Publisher
from conversations.tools import run_tools
from conversations.writer import Writer
from tools_admin.clients import ModelClients, attempt_failed, for_program
from tools_admin.connectors.base import current_run
from tools_admin.connectors.person import asking, in_run, telling
from tools_admin.errors import NoModel
from tools_admin.shown import Picture, pictures

log = logging.getLogger(__name__)

# How long a run waits for a model that does not answer: after each failure a longer pause, 30 minutes in all.
PATIENCE_SECONDS = (2, 5, 10, 20, 30, *[60] * 30)


class RunExecution:
    """One claim of one run in this worker."""

    def __init__(
        self, claimed: Claim, writer: Writer, appender: Appender, models: ModelClients, permissions: Permissions
    ) -> None:
        self.claimed = claimed
        self.begun = asyncio.Event()  # the rows that it needs before its first call were read
        self._writer, self._models, self._permissions = writer, models, permissions
        self._log = appender.open(claimed.run, claimed.epoch)
        self._journal: DatabaseJournal | None = None
        self._answer: Answer | None = None
        self._interrupts = InterruptQueue()
        self._known_interrupts: set[str] = set()
        self._pictures: dict[str, Picture] = {}
        self._reading: asyncio.Task[None] | None = None

    async def execute(self) -> None:
        """Runs to an end, or puts the run back. Cancelling the task stops it; `stop()` then says what became of it."""
        current_run.set(self.claimed.run)
        try:
            if self.claimed.crashes >= MAX_CRASHES:
                await self._end(
                    Run.Status.FAILED, "crash_loop", error="The work broke off three times at the same point."
                )
                return
            await self._work()
        except LeaseLost:
            log.info("Run %s was stopped, or belongs to another worker now.", self.claimed.run)
            await self._refused()
        except LimitReached as reached:
            await self._end(Run.Status.COMPLETED, f"limit:{reached.limit}", answer=reached.message)
        except NoModel as error:
            await self._end(Run.Status.FAILED, error.reason, error=str(error))
        except ModelUnavailable as error:
            await self._wait_for_model(error)
        except ModelError as error:
            log.warning("Run %s: the model refused: %s", self.claimed.run, error)
            await self._end(Run.Status.FAILED, failure_reason(error), error=explain(error))
        except NotSigned as ended:
            await self._end(Run.Status.CANCELLED, ended.reason)
        except BadDraft as error:
            await self._end(Run.Status.FAILED, "bad_draft", error=str(error))
        except LeftAlone as left:
            await self._wait_for_model(left.error)
        except RunSuspended as waiting:
            await self._wait_for_person(waiting.reason, waiting.key)
        except UnknownOutcome as doubt:
            await self._wait_for_person("reconciliation", doubt.key)
        except (OperationalError, InterfaceError) as error:
            # The lease runs out, and another claim goes over the journal to the same end.
            log.warning("Run %s: the database does not answer (%s).", self.claimed.run, str(error).strip()[:200])
        except Exception:
            log.exception("Run %s failed", self.claimed.run)
            text = f"Something went wrong inside. An administrator finds it in the log under {self.claimed.run}."
            await self._end(Run.Status.FAILED, "internal", error=text)
        finally:
            await self._log.close()

    async def read_interrupts(self) -> None:
        """Messages that were sent meanwhile go where the loop finds them, recalled ones leave it."""
        try:
            await self._queue(await in_thread(waiting_interrupts, self.claimed.run))
        except Unread as unread:  # leases are renewed here: no time to wait for it, and the next look finds it read
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(read_documents(unread.ids))

    async def _claim_interrupts(self, spoken_to: bool) -> None:
        """What the loop is about to read can no longer be recalled, and what was recalled it does not read."""
        if spoken_to or len(self._interrupts):  # the wake-up of a message may be late, or lost
            await self._queue(await with_files_read(claim_interrupts, self.claimed.run))

    async def _queue(self, rows: list[Said]) -> None:
        fresh = [content for message, content in rows if message not in self._known_interrupts]
        if any(isinstance(content, list) for content in fresh):
            self._pictures |= await in_thread(pictures_sent, self.claimed.run)
        for gone in set(self._interrupts.ids) - {message for message, _ in rows}:
            self._interrupts.recall(gone)
            self._known_interrupts.discard(gone)
        for message, content in rows:
            if message not in self._known_interrupts:
                self._known_interrupts.add(message)
                self._interrupts.put(content, id=message)

    async def stop(self, reason: str) -> None:
        """What becomes of the run after its task was cancelled."""
        if reason == "user":
            await self._end(Run.Status.CANCELLED, "user", answer=self._answer.text if self._answer else "")
        elif reason == "shutdown":
            await self._transition(put_back)

    async def _work(self) -> None:
        prepared, journal, said = await self._prepare()
        self._journal = journal
        journal.before_model = self._claim_interrupts
        self._answer = answer = Answer(journal, self._log)
        bound = {"mode": prepared.run.mode, "model": prepared.run.model}
        state = {"status": "running", "attempt": journal.attempt, **bound}
        journal.note(f"run/running/{self.claimed.epoch}", Event("run", state))
        if prepared.problems:
            told = [{"filename": name, "message": why} for name, why in prepared.problems]
            journal.note(f"files/{self.claimed.epoch}", Event("files", {"problems": told}))
        self._follow_fallbacks(prepared, journal)
        attempt_failed.set(journal.attempt_failed)
        if (asked := getattr(prepared.run, "asked", None)) and asked.awaited_until:
            for_program.set(True)
        ask = Asking(prepared.run, journal)
        asking.set(ask.in_the_middle)
        telling.set(ProgressOfCalls(journal).of_call)
        in_run.set(run_tools(prepared.run, ask))
        pictures.set(self._pictures)
        publishing = prepared.equipment.publishing
        gate = Gate(prepared.run, journal, self._permissions, ask)
        publisher = Publisher(prepared, journal, gate, answer.emit)
        shared = {
            "journal": journal,
            "emit": None if publishing.holds_back else answer.emit,
            "gate": gate.decide,
        }
        agent = await agent_for(prepared, shared)
        await self._queue(said)
        result = await agent.run(prepared.query, history=prepared.history, interrupts=self._interrupts)
        if publishing.holds_back:
            text = await publisher.publish(agent, result)
        else:
            text = await deliver(agent, prepared.query, result, journal, answer)
            await publisher.judge(result, text)
        reach("K12")
        reason, text = journal.purse.ending(result.stop_reason, text)
        await self._end(Run.Status.COMPLETED, reason, answer=text, iterations=result.iterations)

    def _follow_fallbacks(self, prepared: Prepared, journal: DatabaseJournal) -> None:
        async def follow(now: ChatModel, failures: Sequence[ModelError]) -> None:
            told = await patiently(note_fallback, prepared.run, now, failures)
            key = f"model/{self.claimed.epoch}.{len(prepared.run.model['fallbacks'])}"
            journal.note(key, Event("model", {**told, "model": prepared.run.model}))

        if isinstance(prepared.equipment.model, ModelChain):
            prepared.equipment.model.on_fallback = follow

    async def _prepare(self) -> tuple[Prepared, DatabaseJournal, list[Said]]:
        try:
            return await patiently(self._begin)
        except Unread:  # files take their time: others begin meanwhile
            self.begun.set()
            return await with_files_read(self._begin)
        finally:
            self.begun.set()

    def _begin(self) -> tuple[Prepared, DatabaseJournal, list[Said]]:
        """All reading before the first call, in one go."""
        prepared = prepare(self.claimed.run, self._models)
        self._pictures |= prepared.pictures
        if self.claimed.resumed:  # messages to it that a model has seen stand in its record
            self._pictures |= pictures_sent(self.claimed.run)
        purse = Purse(prepared.run, prepared.allotted, self._draw)
        resumed = self.claimed.resumed
        journal = DatabaseJournal.load(prepared.run, self._writer, self._log, purse, prepared.pricing, resumed=resumed)
        return prepared, journal, waiting_interrupts(self.claimed.run) if self.claimed.spoken_to else []

    async def _draw(self, spent: Amount, open_calls: Amount, need: Amount) -> Allotted:
        return await patiently(draw, self.claimed.run, self.claimed.epoch, spent, open_calls, need)

    async def _refused(self) -> None:
        """A call was not allowed to begin. A run whose model was disabled takes another one, and goes on."""
        why = await patiently(refusal, self.claimed.run, self.claimed.epoch)
        if isinstance(why, ModelDisabled):
            await self._transition(put_back)
        elif isinstance(why, PersonDisabled):
            await self._end(Run.Status.FAILED, "user_disabled", error="The account was disabled while this run worked.")
        else:
            await self.stop("user")

    async def _wait_for_model(self, error: ModelUnavailable) -> None:
        log.warning("Run %s: the model does not answer: %s", self.claimed.run, error)
        reason = "model_loading" if getattr(error, "code", None) == "loading" else "model_unavailable"

        def wait(run: Run) -> None:
            if run.postponed >= len(PATIENCE_SECONDS):
                text = "The model did not answer for half an hour. Try again when it is back."
                end_run(run, Run.Status.FAILED, "model_unavailable", error=text)
            else:
                unread_after_all = run.interrupts.filter(state=Interrupt.State.READ)
                unread_after_all.update(state=Interrupt.State.QUEUED)
                put_back(run, reason=reason, delay=max(PATIENCE_SECONDS[run.postponed], error.retry_after or 0))

        await self._transition(wait)

    async def _wait_for_person(self, reason: str, key: str) -> None:
        def wait(run: Run) -> None:
            if reason == "reconciliation":
                suspend(run, reason, unknown_call(run, key))
            elif reason == "input":
                suspend(run, reason, {"questions": [str(question.id) for question in run.questions.pending()]})
            else:
                pending = run.approvals.filter(state="pending")
                suspend(run, reason, {"approvals": [str(approval.id) for approval in pending]})

        await self._transition(wait)

    async def _end(
        self, status: Run.Status, reason: str, *, answer: str = "", error: str = "", iterations: int = 0
    ) -> None:
        rows = self._journal.closing() if self._journal else []
        attempt = self._journal.attempt if self._journal else 0

        def end(run: Run) -> None:
            record_broken_off(run, rows)
            if self._journal:
                run.cost, run.tokens, run.reserved_cost, run.reserved_tokens = self._journal.purse.sums
            figures: dict[str, Any] = {
                "usage": total_usage(run),
                "attempt": attempt,
                "iterations": iterations or _iterations(run),
            }
            if status == Run.Status.FAILED and run.cancel_requested_at:  # whoever stopped it is not told that it failed
                end_run(run, Run.Status.CANCELLED, "user", answer=answer, **figures)
            else:
                end_run(run, status, reason, answer=answer, error=error, **figures)

        await self._transition(end)

    async def _transition(self, change: Callable[[Run], None]) -> None:
        """Applies a change to the locked row if it is still ours, after everything on its way has been written."""
        if self._journal:
            await self._journal.settled()
        await self._log.close()

        @transaction.atomic(durable=True)
        def apply() -> None:
            if run := held(self.claimed.run, self.claimed.epoch):
                change(run)

        await patiently(apply)


def _iterations(run: Run) -> int:
    return run.calls.filter(kind="llm", key__contains="react/", state=Call.State.SUCCEEDED).count()
