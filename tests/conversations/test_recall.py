"""Messages to a running agent: recall and reading exclude each other, and only so many wait."""

import pytest

from conversations import recalling, services
from conversations.errors import AlreadyRead, NotFound, TooManyMessages
from conversations.interrupting import claim_interrupts, waiting_interrupts
from conversations.models import Interrupt, Message
from tests.factories import make_conversation, make_message, make_run, make_user


@pytest.fixture
def said(transactional_db: None) -> Message:
    run = make_run(make_message(make_conversation(make_user())), "running")
    message = make_message(run.conversation, "Wait", injected=True)
    Interrupt.objects.create(run=run, message=message)
    return message


def test_what_the_model_is_about_to_read_cannot_be_recalled(said: Message) -> None:
    assert claim_interrupts(said.interrupt.run_id) == [(str(said.id), "Wait")]
    with pytest.raises(AlreadyRead):
        recalling.recall_message(said.conversation.user, said.id)
    assert waiting_interrupts(said.interrupt.run_id) == [(str(said.id), "Wait")], "lost if this call fails"


def test_what_was_recalled_is_not_read(said: Message) -> None:
    assert recalling.recall_message(said.conversation.user, said.id).recalled
    assert recalling.recall_message(said.conversation.user, said.id).recalled
    assert claim_interrupts(said.interrupt.run_id) == []
    assert waiting_interrupts(said.interrupt.run_id) == []


def test_only_a_message_to_a_running_agent_can_be_recalled(said: Message) -> None:
    plain = make_message(said.conversation)
    with pytest.raises(NotFound):
        recalling.recall_message(said.conversation.user, plain.id)
    with pytest.raises(NotFound):
        recalling.recall_message(make_user("stranger"), said.id)


def test_only_so_many_messages_wait_for_a_running_agent(said: Message) -> None:
    user, conversation = said.conversation.user, said.conversation_id
    for _ in range(services.MOST_WAITING - 1):
        services.send_message(user, "And", conversation_id=conversation)
    with pytest.raises(TooManyMessages):
        services.send_message(user, "One too many", conversation_id=conversation)
    assert said.conversation.messages.filter(content="One too many").count() == 0
