"""What the agent is told of the conversation so far."""

import pytest

from agentapp.engine import estimate_tokens
from conversations.history import history
from conversations.models import Message, Run
from conversations.talk import talk_of
from tests.factories import make_conversation, make_message, make_run, make_user


@pytest.fixture
def conversation_of_ten(db: None) -> list[Message]:
    conversation = make_conversation(make_user())
    return [
        make_message(conversation, f"message {n} " + "x" * 400, "user" if n % 2 == 0 else "assistant")
        for n in range(10)
    ]


def _run(messages: list[Message]) -> Run:
    return make_run(make_message(messages[0].conversation, "And now?"))


def test_everything_before_the_question_is_there_in_order(conversation_of_ten: list[Message]) -> None:
    told = history(talk_of(_run(conversation_of_ten)), 10_000)
    assert [m.content for m in told] == [m.content for m in conversation_of_ten]
    assert [m.role for m in told] == ["user", "assistant"] * 5


def test_the_newest_stay_when_not_all_fit(conversation_of_ten: list[Message]) -> None:
    told = history(talk_of(_run(conversation_of_ten)), 350)
    assert [m.content for m in told] == [m.content for m in conversation_of_ten[-3:]]
    assert estimate_tokens(told) <= 350


def test_pinned_messages_stay_however_old(conversation_of_ten: list[Message]) -> None:
    Message.objects.filter(id=conversation_of_ten[0].id).update(pinned=True)
    told = history(talk_of(_run(conversation_of_ten)), 350)
    assert told[0].content == conversation_of_ten[0].content
    assert told[0].pinned
    assert [m.content for m in told[1:]] == [m.content for m in conversation_of_ten[-2:]]


def test_pinned_messages_take_at_most_half(conversation_of_ten: list[Message]) -> None:
    Message.objects.update(pinned=True)
    told = history(talk_of(_run(conversation_of_ten)), 450)
    assert [m.content for m in told if m.pinned] == [m.content for m in conversation_of_ten[-4:]]


def test_recalled_messages_are_not_told(conversation_of_ten: list[Message]) -> None:
    Message.objects.filter(id=conversation_of_ten[4].id).update(recalled=True)
    told = history(talk_of(_run(conversation_of_ten)), 10_000)
    assert conversation_of_ten[4].content not in [m.content for m in told]
