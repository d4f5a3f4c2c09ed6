"""A conversation and its files as one ZIP: written while it is sent, and read again with suspicion.

    conversation.json         as `exchange.ConversationFile`, with the name and digest of each file
    runs.json                 for reading only
    files/1-figures.png …     what was attached to messages, and what tools made for their answers

Nothing is unpacked: the words say which entries belong to them, each is read once, into memory, up to its bound, and
taken in like an upload: drawn anew or read by a confined child, within the person's space.
"""

import asyncio
import hashlib
import io
import struct
import threading
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from accounts.models import User
from conversations.attachments import add_attachment
from conversations.cleaning import to_json
from conversations.errors import BadExport
from conversations.exchange import ConversationFile, ExportedFile, export_conversation, import_conversation
from conversations.models import Artifact, Attachment, Conversation, Message, load_files

WORDS, RUNS = "conversation.json", "runs.json"
MOST_WORDS = 30_000_000  # bytes of JSON
MOST_DIRECTORY = 1_000_000  # bytes of the list of entries, which is read as a whole
_PIECE = 1 << 18
_END, _LOCATOR = b"PK\x05\x06", b"PK\x06\x07"  # of a ZIP; the second one only of those with more than 4 GB
# What zipfile raises for archives that were made to hurt it.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)
_DAMAGED = _("The ZIP is damaged. Export the conversation again.")
_reading = threading.BoundedSemaphore(1)  # of a process: the JSON takes many times its size while it is read


async def write_archive(words: dict[str, Any], files: "list[tuple[dict[str, Any], Path]]") -> AsyncIterator[bytes]:
    """The bytes of the ZIP, piece by piece. The digests of the files get into the words on the way."""
    pieces = _pieces(words, files)
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece


def with_files(conversation: Conversation) -> tuple[dict[str, Any], list[tuple[dict[str, Any], Path]]]:
    """The export, and which of its files lies where. Five queries."""
    words = export_conversation(conversation)
    answers = {run_id: message_id for message_id, run_id in _answers(conversation)}
    by_message: dict[UUID, list[Attachment | Artifact]] = {}
    messages = list(conversation.messages.filter(recalled=False).exclude(attachments=[]))
    load_files(messages)
    for message in messages:
        by_message.setdefault(message.id, []).extend(message.files)
    for artifact in Artifact.objects.filter(run__in=answers).order_by("created_at", "id"):
        by_message.setdefault(answers[artifact.run_id], []).append(artifact)
    found: dict[UUID, tuple[dict[str, Any], Path]] = {}
    for exported in words["messages"]:
        rows = [row for row in by_message.get(exported["id"], ()) if row.size and row.path.is_file()]
        for row in rows:  # a message that was written anew shares them with the old one
            described = {"name": f"files/{len(found) + 1}-{row.filename}", "filename": row.filename, "size": row.size}
            found.setdefault(row.id, (described, row.path))
        exported["files"] = [found[row.id][0] for row in rows]
    return words, list(found.values())


def import_file(user: User, file: IO[bytes]) -> Conversation:
    """A new conversation of what was exported as ZIP, with its files, or as JSON, without.

    Raises BadExport, and for each file what uploading it raises; then nothing is kept.
    """
    if file.read(4) != b"PK\x03\x04":
        file.seek(0)
        with _reading:
            return import_conversation(user, _parsed(_up_to(file, MOST_WORDS, "JSON")))
    with _opened(file) as archive:
        with _reading:
            words = _parsed(_entry(archive, WORDS, MOST_WORDS))
        made: dict[str, Attachment] = {}
        try:
            for described in (file for message in words.messages for file in message.files):
                if described.name not in made:
                    made[described.name] = _take(user, archive, described)
            files = {message.id: [made[file.name].id for file in message.files] for message in words.messages}
            return import_conversation(user, words, files)
        except BaseException:
            for row in made.values():
                row.delete()
            raise


def _take(user: User, archive: zipfile.ZipFile, described: ExportedFile) -> Attachment:
    content = _entry(archive, described.name, settings.MAX_ATTACHMENT_BYTES)
    if hashlib.sha256(content).hexdigest() != described.sha256:
        raise BadExport(_("The file %(name)s is not the one that was exported."), name=described.name)
    return add_attachment(user, described.filename, content, any_kind=True)


def _answers(conversation: Conversation) -> Any:
    rows = conversation.messages.filter(role=Message.Role.ASSISTANT, recalled=False).exclude(run=None)
    return rows.values_list("id", "run_id")


class _Pipe(io.RawIOBase):
    """What zipfile writes into; it cannot go back, so sizes stand behind the entries."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def taken(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def _pieces(words: dict[str, Any], files: list[tuple[dict[str, Any], Path]]) -> Iterator[bytes]:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for described, path in files:
            digest = hashlib.sha256()
            # Pictures and PDFs are compressed already.
            with path.open("rb") as source, archive.open(zipfile.ZipInfo(described["name"]), "w") as target:
                while part := source.read(_PIECE):
                    digest.update(part)
                    target.write(part)
                    yield pipe.taken()
            described["sha256"] = digest.hexdigest()
        archive.writestr(RUNS, to_json(words.pop("runs")))
        archive.writestr(WORDS, to_json(words))
    yield pipe.taken()


def _parsed(text: bytes) -> ConversationFile:
    try:
        return ConversationFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "JSON"
        raise BadExport(
            _("This is no export of a conversation: %(where)s: %(what)s."), where=where, what=first["msg"]
        ) from None


@contextmanager
def _opened(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Ours ends with its directory, without a comment, and lists a few hundred entries: a huge list, or a second one
    elsewhere, is not even read."""
    file.seek(0, io.SEEK_END)
    file.seek(max(0, file.tell() - 42))
    end = file.read(42)
    if end[-22:-18] != _END or end[:4] == _LOCATOR or struct.unpack_from("<L", end[-22:], 12)[0] > MOST_DIRECTORY:
        raise BadExport(_("This ZIP was not made by an export, or it was cut off. Export the conversation again."))
    try:
        file.seek(0)
        archive = zipfile.ZipFile(file)
    except _BROKEN:
        raise BadExport(_DAMAGED) from None
    with archive:
        yield archive


def _entry(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    try:
        entry = archive.getinfo(name)
    except KeyError:
        raise BadExport(_("The ZIP lacks %(name)s, which its conversation names."), name=name) from None
    # Of these two zipfile inflates no more than it is asked for.
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadExport(_("%(name)s is encrypted or packed in a way that exports are not."), name=name)
    try:
        with archive.open(entry) as file:
            return _up_to(file, most, name)
    except _BROKEN:
        raise BadExport(_DAMAGED) from None


def _up_to(file: IO[bytes], most: int, name: str) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise BadExport(_("%(name)s is larger than %(most)s bytes."), name=name, most=most)
    return content
