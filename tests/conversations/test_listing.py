"""The list of conversations: its pages, and what search finds."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from conversations.listing import list_conversations
from conversations.models import Conversation, Message
from tests.factories import make_conversation, make_message, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return make_user()


def many(user: User, count: int) -> None:
    now = timezone.now()
    made = Conversation.objects.bulk_create(Conversation(user=user, title=f"Talk {n}") for n in range(count))
    for number, conversation in enumerate(made):  # pairs of the same moment
        at = now - timedelta(minutes=number // 2)
        Conversation.objects.filter(pk=conversation.pk).update(updated_at=at)


def titles(user: User, search: str) -> set[str]:
    return {conversation.title for conversation in list_conversations(user, search=search).conversations}


def test_the_pages_hold_each_conversation_once_and_pinned_ones_first(ada: User) -> None:
    many(ada, 25)
    Conversation.objects.filter(title__in=["Talk 24", "Talk 3"]).update(pinned=True)
    seen, cursor = [], ""
    while True:
        page = list_conversations(ada, cursor=cursor, size=4)
        seen += [conversation.title for conversation in page.conversations]
        if page.next is None:
            break
        cursor = page.next
    assert len(seen) == len(set(seen)) == 25
    assert seen[:2] == ["Talk 3", "Talk 24"]


def test_search_finds_words_of_messages_and_their_beginnings(ada: User) -> None:
    make_message(make_conversation(ada, "One"), "The Straßenbahn is late, said Müller.")
    make_message(make_conversation(ada, "Two"), "Quarterly figures", "assistant")
    make_message(make_conversation(ada, "Three"), "Taken back figures", recalled=True)
    make_message(make_conversation(make_user("eve"), "Secret"), "Quarterly figures")
    assert titles(ada, "straßen") == {"One"}
    assert titles(ada, "müll LATE") == {"One"}
    assert titles(ada, "figures") == {"Two"}
    assert titles(ada, "tw") == {"Two"}, "titles are found as before"
    assert titles(ada, "late figures") == set(), "all words, in one message"


@pytest.mark.parametrize(
    "search", ["'", "a:*|b", "& | !", "(", "\\", "%", "_", "<->", "x" * 5000, "\u0000", "'; drop", "🦊"]
)
def test_any_text_can_be_searched_for(ada: User, client: Client, search: str) -> None:
    make_message(make_conversation(ada, "One"), "Hello")
    client.force_login(ada)
    assert client.get("/", {"q": search}).status_code == 200
    assert client.get("/api/v1/conversations", {"search": search}).status_code == 200


def test_a_message_of_any_length_can_be_kept(ada: User) -> None:
    conversation = make_conversation(ada, "Long")
    make_message(conversation, " ".join(f"wörd{n}" for n in range(150_000)))
    make_message(conversation, "x" * 1_200_000)
    assert titles(ada, "wörd7") == {"Long"}


def test_search_uses_its_index(ada: User) -> None:
    make_message(make_conversation(ada), "Hello")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    rows = Message.objects.annotate(words=Message.WORDS).filter(words="hello")
    assert "message_words" in rows.explain()


def test_by_rest(client: Client, ada: User) -> None:
    client.force_login(ada)
    many(ada, 150)
    first = client.get("/api/v1/conversations").json()
    second = client.get("/api/v1/conversations", {"cursor": first["next"]}).json()
    assert [len(first["items"]), len(second["items"]), second["next"]] == [100, 50, None]
    latest = first["items"][0]
    assert latest["title"] in ("Talk 0", "Talk 1")
    assert client.get(f"/api/v1/conversations/{latest['id']}").json()["title"] == latest["title"]
    for cursor in ("nonsense", "2026-01-01~x", "~", "2026-01-01T00:00:00+00:00~"):
        assert client.get("/api/v1/conversations", {"cursor": cursor}).status_code == 422
        assert client.get("/", {"older": cursor}).status_code == 404
