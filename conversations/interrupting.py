"""What is sent to a run while it is going on, as its loop reads it (synchronous, in a database thread)."""

from uuid import UUID

from django.db.models import QuerySet

from agentapp.engine.messages import Content
from conversations.models import Interrupt
from conversations.talk import content, files_for, pictures_of
from tools_admin.shown import Picture

ROOM = 8_000  # characters of documents: the prompt is there already
REST = "send it again after this answer to have the rest read"

Said = tuple[str, Content]


def waiting_interrupts(run_id: UUID) -> list[Said]:
    """Messages sent to the run that no recorded model call has seen: id and content. Raises `Unread`."""
    return _said(Interrupt.objects.filter(run_id=run_id, state__in=Interrupt.UNSEEN))


def claim_interrupts(run_id: UUID) -> list[Said]:
    """The same, for a model call that begins now: from here on they cannot be recalled."""
    Interrupt.objects.filter(run_id=run_id, state=Interrupt.State.QUEUED).update(state=Interrupt.State.READ)
    return _said(Interrupt.objects.filter(run_id=run_id, state=Interrupt.State.READ))


def pictures_sent(run_id: UUID) -> dict[str, Picture]:
    """Pictures of all messages that were sent to the run meanwhile, read or not."""
    rows = list(Interrupt.objects.filter(run_id=run_id).select_related("message", "run__user").order_by("id"))
    return pictures_of(files_for(rows[0].run, [row.message for row in rows]).values()) if rows else {}


def _said(rows: "QuerySet[Interrupt]") -> list[Said]:
    said: list[Said] = []
    for row in rows.select_related("message").order_by("id"):
        message = row.message
        if not message.attachments:
            said.append((str(message.id), message.content))
            continue
        files = files_for(row.run, [message])
        named = [(number, files.get(number)) for number in message.attachments]
        said.append((str(message.id), content(message.content, named, ROOM, rest=REST)))
    return said
