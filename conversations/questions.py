"""Questions of tools to the person whose run it is: asked once, answered once, kept with the run.

The agent's own question suspends the run, for days if need be. A server's question, in the middle of a call, keeps the
call waiting for some minutes (`asking.py`).
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.models import User
from agentapp.engine import schema_fault
from conversations import live
from conversations.cleaning import clean
from conversations.errors import InvalidAnswer, NotFound, NothingToAnswer
from conversations.events import KeyedEvent
from conversations.lifecycle import add_events, after_commit, put_back
from conversations.models import Question, Run
from tools_admin.connectors.person import Question as Asked

MAX_ANSWER_CHARS = 20_000
STATES = {
    "accept": Question.State.ANSWERED,
    "decline": Question.State.DECLINED,
    "withdraw": Question.State.SUPERSEDED,
}


def ask(run: Run, key: str, asked: Asked, source: str = "", *, seconds: float | None = None) -> Question:
    """The question at this position of the run: a new one, or the one that was asked here before."""
    patience = timedelta(seconds=seconds) if seconds else timedelta(days=settings.APPROVAL_DAYS)
    question, _ = Question.objects.get_or_create(
        run=run,
        key=key,
        defaults={
            "source": source[:100],
            "text": clean(asked.text),
            "fields": clean(asked.schema),
            "url": asked.url,
            "expires_at": min(timezone.now() + patience, run.deadline),
        },
    )
    return question


def answer(user: User, run_id: UUID, question_id: UUID, action: str, content: dict[str, Any]) -> Question:
    """One answer wins; the same one again changes nothing. A run that waits for it goes on.

    `action` is accept (with `content`), decline or withdraw. Raises NotFound, NothingToAnswer, InvalidAnswer.
    """
    state = STATES[action]
    with transaction.atomic(durable=True):
        run = Run.objects.visible_to(user).select_for_update().filter(id=run_id).first()
        question = run.questions.filter(id=question_id).first() if run else None
        if run is None or question is None:
            raise NotFound("question")
        content = _checked(question, clean(content)) if state == Question.State.ANSWERED else {}
        if question.state == state and question.answer == content:
            return question
        if question.state != Question.State.PENDING or question.expires_at <= timezone.now():
            raise NothingToAnswer
        question.answer, question.answered_at = content, timezone.now()
        _settle(run, question, state)
    return question


def expire_questions() -> None:
    """Silence is an answer, too: the agent is told, the run goes on."""
    overdue = Question.objects.pending().filter(expires_at__lt=timezone.now())
    for question_id, run_id in overdue.values_list("id", "run_id")[:500]:
        with transaction.atomic():
            run = Run.objects.select_for_update().get(id=run_id)
            question = Question.objects.get(id=question_id)
            if question.state == Question.State.PENDING:
                _settle(run, question, Question.State.EXPIRED)


def question_data(question: Question) -> dict[str, Any]:
    """The `question` event of `docs/protocol.md`."""
    return {
        "question_id": str(question.id),
        "status": str(question.state),
        "source": question.source,
        "text": question.text,
        "fields": question.fields,
        "url": question.url,
        "expires_at": question.expires_at.isoformat(timespec="seconds"),
        "answer": question.answer,
    }


def _settle(run: Run, question: Question, state: Question.State) -> None:
    question.state = state
    question.save()
    add_events(run, [KeyedEvent(f"question/{question.key}/settled", "question", question_data(question))])
    after_commit(live.tell_user, run.user_id, ("question", {"run": str(run.id), **question_data(question)}))
    if run.status == Run.Status.WAITING and run.reason == "input":
        put_back(run)


def _checked(question: Question, content: dict[str, Any]) -> dict[str, Any]:
    if len(str(content)) > MAX_ANSWER_CHARS:
        raise InvalidAnswer(f"at most {MAX_ANSWER_CHARS:,} characters are allowed")
    if not question.fields:
        return {}
    if (fault := schema_fault(question.fields, content)) is not None:
        raise InvalidAnswer(fault)
    return content
