"""A conversation with its files as a ZIP, and what strangers may put into one."""

import asyncio
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import User
from conversations.archive import import_file, with_files, write_archive
from conversations.attachments import add_attachment
from conversations.errors import BadExport, ConversationError
from conversations.exchange import ConversationFile, import_conversation
from conversations.files import save_file
from conversations.models import Artifact, Attachment, Conversation
from tests.factories import make_conversation, make_message, make_run, make_user
from tests.pictures import picture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada() -> User:
    return make_user("ada")


@pytest.fixture
def page(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def zipped(conversation: Conversation) -> bytes:
    async def whole() -> bytes:
        return b"".join([piece async for piece in write_archive(*exported)])

    exported = with_files(conversation)
    return asyncio.run(whole())


def bring(page: Client, content: bytes, name: str = "export.zip") -> Any:
    return page.post("/api/v1/conversations/import/file", {"file": SimpleUploadedFile(name, content)})


def given(talk: Conversation, *files: Attachment) -> None:
    Attachment.objects.filter(id__in=[file.id for file in files]).update(conversation=talk)


def talk_with_files(user: User) -> Conversation:
    """A question with a picture and a note, an answer for which a tool made a table of a kind that cannot be read."""
    talk = make_conversation(user, "Figures")
    files = [
        add_attachment(user, "chart.png", picture()),
        add_attachment(user, "Notiz — größer.md", "# Größe".encode()),
    ]
    given(talk, *files)
    question = make_message(talk, "How many?", attachments=[file.id for file in files])
    run = make_run(question, "completed", answer="Five.")
    made = Artifact(run=run, key="react/1/tool/0", filename="table.xlsx", content_type="application/vnd.ms-excel")
    save_file(made, b"PK\x03\x04 a table")
    reply = make_message(talk, "Five.", role="assistant", run=run)
    make_message(talk, "How many now?", parent_id=None, attachments=[files[0].id])
    Conversation.objects.filter(id=talk.id).update(leaf=reply)
    talk.leaf = reply
    return talk


def test_what_is_brought_back_has_its_files(page: Client, ada: User) -> None:
    archive = zipped(talk_with_files(ada))
    eve = make_user("eve")
    page.force_login(eve)
    answer = bring(page, archive)
    assert answer.status_code == 201, answer.content
    mine = Conversation.objects.get(id=answer.json()["id"])
    first, reply, anew = mine.messages.order_by("created_at")
    assert [(file.filename, file.content_type, file.user) for file in first.files] == [
        ("chart.png", "image/png", eve),
        ("Notiz — größer.md", "text/markdown", eve),
    ]
    assert first.files[1].path.read_bytes() == "# Größe".encode()
    [table] = reply.files
    assert (table.filename, table.problem, table.path.read_bytes()) == ("table.xlsx", "unknown", b"PK\x03\x04 a table")
    assert anew.files == first.files[:1], "a file that two messages have is one file"
    assert not Attachment.objects.visible_to(eve).unsent().exists()
    shown = page.get(f"/c/{mine.id}/").content.decode()
    assert shown.count("table.xlsx") and f"/attachments/{table.id}/" in shown, "the page shows files of answers, too"
    again = zipped(mine)
    assert names_in(again) == names_in(archive)


def names_in(archive: bytes) -> set[str]:
    return set(zipfile.ZipFile(io.BytesIO(archive)).namelist())


def test_a_zip_is_written_piece_by_piece_and_opened_by_any_program(page: Client, ada: User) -> None:
    talk = talk_with_files(ada)
    large = add_attachment(ada, "large.txt", b"word " * 200_000)
    given(talk, large)
    make_message(talk, "And this?", attachments=[large.id])

    async def pieces() -> list[int]:
        return [len(piece) async for piece in write_archive(*exported)]

    exported = with_files(talk)
    assert max(asyncio.run(pieces())) < 300_000
    opened = zipfile.ZipFile(io.BytesIO(zipped(talk)))
    assert opened.testzip() is None
    assert {"conversation.json", "runs.json", "files/3-table.xlsx"} <= set(opened.namelist())
    with pytest.warns(Warning, match="asynchronous iterators"):  # the test client is synchronous
        got = b"".join(page.get(f"/api/v1/conversations/{talk.id}/export", {"format": "zip"}))
    assert names_in(got) == set(opened.namelist())


def test_json_of_more_than_two_megabytes_comes_back_as_a_file(page: Client) -> None:
    ids = [str(uuid4()) for _ in range(6)]
    messages = [{"id": name, "role": "user", "content": "x" * 800_000} for name in ids]
    text = json.dumps({"format": "agentapp.conversation", "version": 1, "title": "Long", "messages": messages})
    assert bring(page, text.encode(), "Long.json").status_code == 201
    assert Conversation.objects.get().messages.count() == 6


def words(*files: dict[str, Any], **more: Any) -> bytes:
    message = {"id": str(uuid4()), "role": "user", "content": "Look", "files": list(files)}
    return json.dumps({"format": "agentapp.conversation", "version": 1, "messages": [message], **more}).encode()


def described(content: bytes, name: str = "files/1-a.txt") -> dict[str, Any]:
    return {"name": name, "filename": "a.txt", "sha256": hashlib.sha256(content).hexdigest()}


def archive_of(*entries: tuple[str, bytes], kind: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, content in entries:
            archive.writestr(name, content)
        archive.comment = comment
    return buffer.getvalue()


def good(content: bytes = b"Hello") -> list[tuple[str, bytes]]:
    return [("files/1-a.txt", content), ("conversation.json", words(described(content)))]


def _encrypted() -> bytes:
    """With the flag that says so, in both places."""
    data = bytearray(archive_of(*good()))
    start = data.index(b"PK\x01\x02")
    data[start + 8] |= 1
    data[6] |= 1
    return bytes(data)


ZEROS = bytes(60_000_000)
HOSTILE: dict[str, Callable[[], bytes]] = {
    "a file that inflates to more than a file may have": lambda: archive_of(*good(ZEROS)),
    "words that inflate without end": lambda: archive_of(("conversation.json", ZEROS)),
    "another digest": lambda: archive_of(good()[0], ("conversation.json", words(described(b"other")))),
    "no such entry": lambda: archive_of(good()[1]),
    "no words": lambda: archive_of(good()[0]),
    "a way out by a name": lambda: archive_of(("conversation.json", words(described(b"", "../../etc/passwd")))),
    "encrypted": _encrypted,
    "packed otherwise": lambda: archive_of(*good(), kind=zipfile.ZIP_LZMA),
    "a comment to hide in": lambda: archive_of(*good(), comment=b"x"),
    "a long list of entries": lambda: archive_of(*good(), *((f"{n:060}", b"") for n in range(10_000))),
    "cut off": lambda: archive_of(*good())[:-10],
    "too many files": lambda: archive_of(
        (
            "conversation.json",
            words(*(described(b"", str(n)) for n in range(150)), *(described(b"", f"x{n}") for n in range(150))),
        )
    ),
    "somebody else's id": lambda: archive_of(("conversation.json", words(described(b"x") | {"id": str(uuid4())}))),
    "nothing": lambda: b"PK\x05\x06" + bytes(18),
    "other JSON": lambda: b'{"a": [1]}',
    "deep JSON": lambda: b'{"runs": ' + b"[" * 100_000,
    "long JSON": lambda: b" " * 31_000_000,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_and_leaves_nothing(page: Client, what: str) -> None:
    answer = bring(page, HOSTILE[what]())
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_export"), answer.content
    assert not Conversation.objects.exists() and not Attachment.objects.exists()


def test_when_one_of_the_files_cannot_be_taken_none_is_kept(page: Client, settings: Any) -> None:
    settings.ATTACHMENT_QUOTA_BYTES = 100
    parts = [(f"files/{n}.txt", b"x" * 60) for n in range(2)]
    text = words(*(described(content, name) for name, content in parts))
    answer = bring(page, archive_of(*parts, ("conversation.json", text)))
    assert (answer.status_code, answer.json()["code"]) == (413, "quota_exceeded")
    assert not Conversation.objects.exists() and not Attachment.objects.exists()


def test_files_are_what_they_are_and_not_what_is_said_of_them(page: Client) -> None:
    page_of_scripts = b"<!doctype html><script>alert(1)</script>"
    named = described(page_of_scripts) | {"filename": "../..\\evil\u202egnp.png"}
    assert bring(page, archive_of(good(page_of_scripts)[0], ("conversation.json", words(named)))).status_code == 201
    row = Attachment.objects.get()
    assert (row.filename, row.content_type, row.is_picture) == ("evilgnp.png", "text/html", False)


def test_damaged_archives_never_do_more_than_fail(ada: User) -> None:
    """Bytes changed at random: it is brought back whole, or refused in our words."""
    whole, chance = archive_of(*good(b"Hello " * 50)), random.Random(7)  # noqa: S311
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            import_file(ada, io.BytesIO(bytes(data)))
        except ConversationError as error:
            refused += isinstance(error, BadExport)
    assert refused > 100
    assert not Attachment.objects.unsent().exists()


def test_somebody_elses_file_is_never_given_away(ada: User) -> None:
    eve = make_user("eve")
    hers = add_attachment(eve, "a.txt", b"secret")
    file = ConversationFile.model_validate_json(words())
    import_conversation(ada, file, {file.messages[0].id: [hers.id]})
    hers.refresh_from_db()
    assert hers.conversation is None and Conversation.objects.get().messages.get().files == []
