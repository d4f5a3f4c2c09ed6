"""The list of one's conversations: pinned ones first, then the newest, page by page; search in titles and messages."""

import re
from dataclasses import dataclass

from django.contrib.postgres.search import SearchQuery
from django.db.models import OuterRef, Q, QuerySet, Subquery

from accounts.models import User
from accounts.paging import read_time_cursor, time_cursor
from conversations.cleaning import clean
from conversations.models import Conversation, Message, Run

PAGE_SIZE = 100
MOST_WORDS = 20


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the list; `next` is the cursor of the page after it."""

    conversations: list[Conversation]
    next: str | None


def list_conversations(
    user: User, *, search: str = "", archived: bool = False, cursor: str = "", size: int = PAGE_SIZE
) -> Listing:
    """One query. `run_status` of each is that of its run that is going on. Raises ValueError: this is no cursor."""
    rows = Conversation.objects.visible_to(user).filter(archived=archived)
    if search := clean(search).strip():
        rows = rows.filter(_found(user, search))
    if cursor:  # pinned ones stand on the first page
        when, number = read_time_cursor(cursor)
        rows = rows.filter(Q(updated_at__lt=when) | Q(updated_at=when, id__lt=number), pinned=False)
    active = Run.objects.active().filter(conversation=OuterRef("pk"))
    rows = rows.annotate(run_status=Subquery(active.values("status")[:1]))
    found = list(rows.order_by("-pinned", "-updated_at", "-id")[: size + 1])
    page = found[:size]
    return Listing(page, time_cursor(page[-1].updated_at, page[-1].id) if len(found) > size else None)


def _found(user: User, search: str) -> Q:
    condition = Q(title__icontains=search)
    words = re.findall(r"\w+", search)[:MOST_WORDS]
    if words:
        condition |= Q(pk__in=_saying(user, words).values("conversation"))
    return condition


def _saying(user: User, words: list[str]) -> QuerySet[Message]:
    """Messages with all these words, or words that begin like them."""
    query = SearchQuery(" & ".join(f"{word}:*" for word in words), search_type="raw", config="simple")
    return Message.objects.visible_to(user).filter(recalled=False).annotate(words=Message.WORDS).filter(words=query)
