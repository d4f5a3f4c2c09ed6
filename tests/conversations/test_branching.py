"""Edits, regenerations and branches: siblings in the tree, one visible branch, refused while a run is going on."""

import threading
from uuid import uuid4

import pytest
from django.test import Client

from accounts.models import User
from conversations import branching, recalling, services, tree
from conversations.errors import NotAQuestion, NotFound, RunActive
from conversations.history import history
from conversations.lifecycle import end_run
from conversations.models import Conversation, Interrupt, Message, Run
from conversations.services import Place
from conversations.talk import talk_of
from tests.factories import make_conversation, make_message, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada() -> User:
    return make_user()


@pytest.fixture
def talk(ada: User) -> Conversation:
    """Two finished turns."""
    conversation = make_conversation(ada)
    say(conversation, "One?")
    answer(conversation, "One.")
    say(conversation, "Two?")
    answer(conversation, "Two.")
    return conversation


def say(conversation: Conversation, text: str, **place: Place | None) -> services.Sent:
    return services.send_message(conversation.user, text, conversation_id=conversation.id, **place)


def answer(conversation: Conversation, text: str, status: Run.Status = Run.Status.COMPLETED, reason: str = "") -> None:
    """The active run ends with this text."""
    from django.db import transaction

    with transaction.atomic():
        run = Run.objects.active().select_for_update().get(conversation=conversation)
        end_run(run, status, reason or "final_answer", answer=text)


def shown(conversation: Conversation) -> list[str]:
    conversation.refresh_from_db()
    return [message.content for message in tree.branch(conversation.leaf_id, 100)]


def message(conversation: Conversation, text: str) -> Message:
    return conversation.messages.get(content=text)


def test_an_edited_message_stands_beside_the_old_one(ada: User, talk: Conversation) -> None:
    sent = branching.edit_message(ada, message(talk, "Two?").id, "Three?")
    assert shown(talk) == ["One?", "One.", "Three?"]
    assert sent.message.parent == message(talk, "One.")
    answer(talk, "Three.")
    assert shown(talk) == ["One?", "One.", "Three?", "Three."]


def test_the_first_message_can_be_edited_too(ada: User, talk: Conversation) -> None:
    branching.edit_message(ada, message(talk, "One?").id, "Zero?")
    assert shown(talk) == ["Zero?"]
    found = tree.siblings(talk, [message(talk, "Zero?")])[None]
    assert found == [message(talk, "One?").id, message(talk, "Zero?").id]


def test_a_regenerated_answer_stands_beside_the_old_one(ada: User, talk: Conversation) -> None:
    run = branching.regenerate(ada, message(talk, "Two.").id)
    assert run.message == message(talk, "Two?")
    assert shown(talk) == ["One?", "One.", "Two?"]
    answer(talk, "Two again.")
    assert shown(talk) == ["One?", "One.", "Two?", "Two again."]
    assert message(talk, "Two again.").parent == message(talk, "Two.").parent


def test_a_branch_begins_where_it_is_told_to(talk: Conversation) -> None:
    say(talk, "Another two?", place=Place(message(talk, "One.").id))
    assert shown(talk) == ["One?", "One.", "Another two?"]


def test_the_agent_is_told_the_visible_branch_alone(ada: User, talk: Conversation) -> None:
    Message.objects.filter(content="Two.").update(pinned=True)
    sent = branching.edit_message(ada, message(talk, "Two?").id, "Three?")
    assert [m.content for m in history(talk_of(sent.run), 10_000)] == ["One?", "One."]
    answer(talk, "Three.")
    again = branching.regenerate(ada, message(talk, "One.").id)
    assert history(talk_of(again), 10_000) == []


def test_pinned_messages_of_the_branch_stay_in_the_context_however_old(talk: Conversation) -> None:
    Message.objects.filter(content="One.").update(pinned=True)
    for number in range(120):
        make_message(talk, f"more {number}")
        make_message(talk, f"yes {number}", "assistant")
    sent = say(talk, "And now?")
    told = history(talk_of(sent.run), 100_000)
    assert told[0].content == "One."
    assert len(told) == 201


def test_another_branch_becomes_visible_to_its_newest_end(ada: User, talk: Conversation) -> None:
    branching.edit_message(ada, message(talk, "One?").id, "Zero?")
    answer(talk, "Zero.")
    branching.show_branch(ada, talk.id, message(talk, "One?").id)
    assert shown(talk) == ["One?", "One.", "Two?", "Two."]
    say(talk, "Three?")
    assert shown(talk)[-2:] == ["Two.", "Three?"]


def test_while_a_run_is_going_on_everything_else_is_refused(ada: User, talk: Conversation) -> None:
    say(talk, "Three?")
    before = shown(talk)
    with pytest.raises(RunActive):
        branching.edit_message(ada, message(talk, "Two?").id, "Other")
    with pytest.raises(RunActive):
        branching.regenerate(ada, message(talk, "Two.").id)
    with pytest.raises(RunActive):
        branching.show_branch(ada, talk.id, message(talk, "One.").id)
    with pytest.raises(RunActive):
        say(talk, "Other", place=Place(message(talk, "One.").id))
    assert shown(talk) == before


def test_an_answer_cannot_be_edited_and_nothing_foreign_be_touched(ada: User, talk: Conversation) -> None:
    stranger = make_user("eve")
    with pytest.raises(NotAQuestion):
        branching.edit_message(ada, message(talk, "Two.").id, "Mine")
    for action in (
        lambda: branching.edit_message(stranger, message(talk, "Two?").id, "Mine"),
        lambda: branching.regenerate(stranger, message(talk, "Two.").id),
        lambda: branching.show_branch(stranger, talk.id, message(talk, "Two.").id),
        lambda: branching.show_branch(ada, make_conversation(ada).id, message(talk, "Two.").id),
        lambda: recalling.collect_returned(stranger, talk.id),
        lambda: say(make_conversation(ada), "Mine", place=Place(message(talk, "Two.").id)),
    ):
        with pytest.raises(NotFound):
            action()
    assert shown(talk) == ["One?", "One.", "Two?", "Two."]


def test_the_same_edit_twice_is_one_message(ada: User, talk: Conversation) -> None:
    number = message(talk, "Two?").id
    first = branching.edit_message(ada, number, "Three?", client_id="c1")
    assert branching.edit_message(ada, number, "Three?", client_id="c1").message == first.message


def test_of_many_at_once_one_is_done(ada: User, talk: Conversation) -> None:
    outcomes: list[str] = []
    number = message(talk, "Two.").id

    def try_it() -> None:
        from django.db import connection

        try:
            branching.regenerate(ada, number)
            outcomes.append("done")
        except RunActive:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done"] + ["refused"] * 7
    assert shown(talk)[-1] == "Two?"


def test_what_was_added_meanwhile_stands_before_the_answer_in_every_attempt(ada: User, talk: Conversation) -> None:
    say(talk, "Three?")
    added = say(talk, "Quickly")
    assert added.injected
    Interrupt.objects.update(state="admitted")
    answer(talk, "Three", Run.Status.FAILED, "internal")
    assert shown(talk)[-3:] == ["Three?", "Quickly", "Three"]
    services.retry_run(ada, added.run.id)
    assert shown(talk)[-2:] == ["Three?", "Quickly"]
    answer(talk, "Three.")
    assert shown(talk)[-3:] == ["Three?", "Quickly", "Three."]
    assert message(talk, "Three.").parent == message(talk, "Three").parent


def test_what_nobody_read_follows_the_answer(talk: Conversation) -> None:
    say(talk, "Three?")
    say(talk, "Four?")
    say(talk, "Five?")
    answer(talk, "Three.")
    assert shown(talk)[-4:] == ["Three?", "Three.", "Four?", "Five?"]
    answer(talk, "Five.")
    assert shown(talk)[-2:] == ["Five?", "Five."]


def test_what_was_taken_back_leaves_the_branch(ada: User, talk: Conversation) -> None:
    say(talk, "Three?")
    first, second = say(talk, "Quickly"), say(talk, "In green")
    recalling.recall_message(ada, first.message.id)
    assert shown(talk)[-2:] == ["Three?", "In green"]
    recalling.recall_message(ada, second.message.id)
    assert shown(talk)[-1] == "Three?"
    answer(talk, "Three.")
    assert message(talk, "Three.").parent == message(talk, "Three?")


def test_after_a_stop_what_nobody_read_is_given_back_exactly_once(ada: User, talk: Conversation) -> None:
    say(talk, "Three?")
    say(talk, "Quickly")
    say(talk, "In green")
    answer(talk, "Thr", Run.Status.CANCELLED, "user")
    assert shown(talk)[-2:] == ["Three?", "Thr"]
    given: list[str] = []

    def collect() -> None:
        from django.db import connection

        given.extend(m.content for m in recalling.collect_returned(ada, talk.id))
        connection.close()

    threads = [threading.Thread(target=collect) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given == ["Quickly", "In green"]


def test_the_page_shows_where_it_stands_among_alternatives(client: Client, ada: User, talk: Conversation) -> None:
    client.force_login(ada)
    address = f"/c/{talk.id}/"
    assert "1/2" not in client.get(address).content.decode()
    branching.regenerate(ada, message(talk, "Two.").id)
    assert "2/2" in client.get(address).content.decode(), "the answer to come is the second"
    answer(talk, "Two again.")
    html = client.get(address).content.decode()
    assert "2/2" in html
    assert "Two again." in html.split('class="thread"')[1]
    branching.show_branch(ada, talk.id, message(talk, "Two.").id)
    assert "1/2" in client.get(address).content.decode()


def test_a_failed_attempt_hides_with_its_branch(client: Client, ada: User, talk: Conversation) -> None:
    client.force_login(ada)
    failed = branching.regenerate(ada, message(talk, "Two.").id)
    answer(talk, "", Run.Status.FAILED, "internal")
    html = client.get(f"/c/{talk.id}/").content.decode()
    assert f'data-run="{failed.id}"' in html
    assert "2/2" in html
    branching.show_branch(ada, talk.id, message(talk, "Two.").id)
    html = client.get(f"/c/{talk.id}/").content.decode()
    assert f'data-run="{failed.id}"' not in html


def test_by_rest(client: Client, ada: User, talk: Conversation) -> None:
    client.force_login(ada)

    def post(path: str, body: object = None, method: str = "post") -> tuple[int, dict[str, object]]:
        found = getattr(client, method)(f"/api/v1{path}", body, content_type="application/json")
        return found.status_code, found.json()

    two = message(talk, "Two?").id
    status, body = post(f"/messages/{two}/edit", {"content": "Three?"})
    assert status == 202
    assert post(f"/messages/{two}/edit", {"content": "Four?"})[1]["code"] == "run_active"
    status, body = post(f"/messages/{message(talk, 'Two.').id}/regenerate")
    assert (status, body["code"]) == (409, "run_active")
    answer(talk, "Three.")
    status, body = post(f"/messages/{message(talk, 'Three.').id}/regenerate")
    assert status == 202
    answer(talk, "Three!")
    assert post(f"/conversations/{talk.id}", {"branch": str(two)}, "patch")[1]["branch"] == str(
        message(talk, "Two.").id
    )
    page = client.get(f"/api/v1/conversations/{talk.id}/messages").json()
    assert [m["content"] for m in page["items"]] == ["One?", "One.", "Two?", "Two."]
    assert page["next"] is None
    assert post(f"/messages/{two}", {"feedback": "good"}, "patch")[1]["feedback"] == "good"
    assert post(f"/messages/{two}", {"feedback": "great"}, "patch")[0] == 422
    assert post(f"/messages/{two}", {"feedback": None}, "patch")[0] == 422
    assert post(f"/messages/{two}/edit", {"content": " "})[1]["code"] == "empty_message"
    assert client.get(f"/api/v1/conversations/{talk.id}/messages?cursor={uuid4()}").status_code == 409


def test_the_visible_branch_is_paged(client: Client, ada: User, talk: Conversation) -> None:
    client.force_login(ada)
    for number in range(300):
        make_message(talk, f"more {number}")
    address, seen = f"/api/v1/conversations/{talk.id}/messages", []
    cursor = ""
    while cursor is not None:
        page = client.get(address, {"cursor": cursor} if cursor else {}).json()
        seen += [m["content"] for m in page["items"]]
        cursor = page["next"]
    assert len(seen) == len(set(seen)) == 304
