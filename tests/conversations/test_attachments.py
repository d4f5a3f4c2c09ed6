"""Files that people add to messages: what is taken, whose they are, where they go."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from PIL import Image
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts.models import User
from agentapp.confined import Refused
from conversations import attachments, branching, recalling, services
from conversations.attachment_errors import BadPicture
from conversations.attachments import UNSENT_DAYS, sweep_attachments
from conversations.models import Attachment, Conversation, Message
from tests.factories import make_conversation, make_message, make_run, make_user
from tests.pictures import SVG, opened, picture
from tests.product import eventually

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return make_user()


@pytest.fixture
def page(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def upload(page: Client, name: str, content: bytes, media_type: str = "text/plain") -> Any:
    return page.post("/api/v1/attachments", {"file": SimpleUploadedFile(name, content, media_type)})


def uploaded(page: Client, name: str = "notes.txt", content: bytes = b"Some notes.") -> Attachment:
    answer = upload(page, name, content)
    assert answer.status_code == 201, answer.content
    return Attachment.objects.get(id=answer.json()["id"])


def fetched(page: Client, address: str) -> tuple[Any, bytes]:
    got: Any = page.get(address)
    return got, got.getvalue()


def refused(answer: Any, status: int, code: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert Attachment.objects.count() == 0
    return str(answer.json()["detail"])


def test_a_text_is_kept_as_it_is_and_given_out_as_a_download(page: Client) -> None:
    answer = upload(page, "notes.md", b"# Notes", "text/html").json()
    assert (answer["filename"], answer["content_type"], answer["size"]) == ("notes.md", "text/markdown", 7)
    assert (answer["status"], answer["conversation"]) == ("queued", None)
    for address in (f"/api/v1/attachments/{answer['id']}", f"/attachments/{answer['id']}/"):
        got, content = fetched(page, address)
        assert content == b"# Notes"
        assert got["Content-Type"] == "application/octet-stream"
        assert got["Content-Disposition"] == 'attachment; filename="notes.md"'
        assert got["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in got["Content-Security-Policy"]


def test_a_picture_is_drawn_anew_without_what_it_knew(page: Client) -> None:
    exif = Image.Exif()
    exif[0x010E], exif[0x0112] = "taken at home", 6
    row = uploaded(page, "photo.jpg", picture("JPEG", exif=exif, comment=b"secret") + b"<script>alert(1)</script>")
    stored = row.path.read_bytes()
    assert (row.content_type, row.status, opened(stored).size) == ("image/jpeg", "ready", (30, 40))  # turned upright
    assert not any(word in stored for word in (b"taken at home", b"secret", b"<script>", b"Exif"))
    assert fetched(page, f"/attachments/{row.id}/")[0]["Content-Type"] == "image/jpeg"


@pytest.mark.parametrize(("kind", "becomes"), [("PNG", "PNG"), ("GIF", "PNG"), ("WEBP", "JPEG"), ("JPEG", "JPEG")])
def test_pictures_become_one_of_two_kinds(page: Client, kind: str, becomes: str) -> None:
    row = uploaded(page, "misnamed.txt", picture(kind, (3_000, 1_000)))
    found = opened(row.path.read_bytes())
    assert (found.format, max(found.size), row.is_picture) == (becomes, 2_048, True)


def test_pictures_are_drawn_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work: list[int] = []
    counted: list[int] = []
    go_on = threading.Event()

    async def drawn(_content: bytes) -> tuple[bytes, str]:
        at_work.append(1)
        counted.append(len(at_work))
        go_on.wait()
        at_work.pop()
        raise Refused("picture")

    monkeypatch.setattr(attachments, "redrawn", drawn)

    def add(_number: int) -> None:
        with pytest.raises(BadPicture):
            attachments.add_attachment(User(), "x.png", picture("PNG"))

    with ThreadPoolExecutor(6) as pool:
        added = pool.map(add, range(6))
        eventually(lambda: len(counted) >= 2, "some are at work")
        go_on.set()
        list(added)
    assert len(counted) == 6
    assert max(counted) <= 2


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("empty.txt", b"", 422, "empty_file"),
        ("drawing.svg", SVG, 415, "unsupported_file"),
        ("drawing.txt", b'<?xml version="1.0"?>\n<!-- x -->\n' + SVG, 415, "unsupported_file"),
        ("program.txt", b"\x7fELF\x02\x01\x01\x00\x00", 415, "unsupported_file"),
        ("archive.docx", b"PK\x03\x04 no word here", 415, "unsupported_file"),
        ("broken.png", b"\x89PNG\r\n\x1a\n" + b"x" * 100, 422, "bad_picture"),
        ("bomb.png", picture("PNG", (9_000, 9_000), mode="1", colour="black"), 422, "bad_picture"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_used_is_refused_with_a_reason(
    page: Client, name: str, content: bytes, status: int, code: str
) -> None:
    assert len(refused(upload(page, name, content, "image/png"), status, code)) > 30


def test_a_page_that_calls_itself_a_picture_stays_a_text(page: Client) -> None:
    row = uploaded(page, "cat.png", b"<!DOCTYPE html><script>alert(1)</script>")
    assert (row.content_type, row.is_picture) == ("text/html", False)
    assert fetched(page, f"/attachments/{row.id}/")[0]["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\report.txt", "report.txt"),
        ("invoice\u202etxt.exe", "invoicetxt.exe"),
        ("x" * 300 + ".txt", "x" * 196 + ".txt"),
        ("..", "file"),
    ],
)
def test_a_name_is_only_text(page: Client, settings: Any, name: str, kept: str) -> None:
    row = services_add(page, name)
    assert row.filename == kept
    assert row.path.is_relative_to(settings.MEDIA_ROOT)
    assert row.path.name == row.id.hex


def services_add(page: Client, name: str) -> Attachment:
    """Below the server's own cleaning of names."""
    from conversations.attachments import add_attachment

    return add_attachment(User.objects.get(), name, b"text")


def test_size_and_quota_are_limits_with_words(page: Client, settings: Any) -> None:
    settings.MAX_ATTACHMENT_BYTES = 1_000_000
    assert "1 MB" in refused(upload(page, "a.txt", b"x" * 1_000_001), 413, "file_too_large")
    settings.ATTACHMENT_QUOTA_BYTES = 1_500_000
    first = uploaded(page, content=b"x" * 900_000)
    assert upload(page, "b.txt", b"x" * 900_000).json()["code"] == "quota_exceeded"
    page.delete(f"/api/v1/attachments/{first.id}")
    assert upload(page, "b.txt", b"x" * 900_000).status_code == 201


def test_hundreds_of_files_in_one_request_are_a_bad_request(page: Client) -> None:
    files = [SimpleUploadedFile(f"{n}.txt", b"x") for n in range(300)]
    answer = page.post("/api/v1/attachments", {"file": files})
    assert answer.status_code == 400
    assert Attachment.objects.count() == 0


def test_a_file_without_a_message_can_be_deleted(
    page: Client, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    row = uploaded(page)
    with django_capture_on_commit_callbacks(execute=True):
        assert page.delete(f"/api/v1/attachments/{row.id}").status_code == 204
    assert not row.path.exists()
    for answer in (page.delete(f"/api/v1/attachments/{row.id}"), page.get(f"/api/v1/attachments/{row.id}")):
        assert answer.status_code == 404


def send(page: Client, conversation: Conversation, content: str, *files: Any) -> Any:
    body = {"content": content, "attachments": [str(getattr(file, "id", file)) for file in files]}
    address = f"/api/v1/conversations/{conversation.id}/messages"
    return page.post(address, body, content_type="application/json")


def test_a_message_shows_its_files_in_order(page: Client, ada: User) -> None:
    conversation = make_conversation(ada)
    second, first = uploaded(page, "b.txt"), uploaded(page, "a.png", picture())
    assert send(page, conversation, "Look", first, second, first).status_code == 202
    (item,) = page.get(f"/api/v1/conversations/{conversation.id}/messages").json()["items"]
    assert [file["filename"] for file in item["attachments"]] == ["a.png", "b.txt"]
    html = page.get(f"/c/{conversation.id}/").content.decode()
    assert f'src="/attachments/{first.id}/" alt="a.png"' in html
    assert 'download="b.txt"' in html
    assert page.delete(f"/api/v1/attachments/{first.id}").json()["code"] == "attachment_sent"


def test_a_file_needs_no_words(page: Client, ada: User) -> None:
    sent = services.send_message(ada, "", attachments=[uploaded(page, "figures.csv").id])
    assert (sent.conversation.title, sent.message.content) == ("figures.csv", "")
    assert send(page, sent.conversation, " ").json()["code"] == "empty_message"


def test_only_ones_own_files_of_this_conversation_can_be_sent(page: Client, ada: User) -> None:
    conversation, other = make_conversation(ada), make_conversation(ada)
    eve = Client()
    eve.force_login(make_user("eve"))
    hers, gone, elsewhere = uploaded(eve), uploaded(page), uploaded(page)
    gone.delete()
    assert send(page, other, "There", elsewhere).status_code == 202
    for file, status, code in [
        (hers, 404, "not_found"),
        (gone.id or uuid.uuid4(), 404, "not_found"),
        (uuid.uuid4(), 404, "not_found"),
        (elsewhere, 409, "attachment_elsewhere"),
    ]:
        answer = send(page, conversation, "Look", file)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not conversation.messages.exists()
    assert page.get(f"/attachments/{hers.id}/").status_code == 404
    assert [row["id"] for row in page.get("/api/v1/attachments").json()["items"]] == [str(elsewhere.id)]
    assert page.get(f"/api/v1/attachments?ids={hers.id}").json()["items"] == []


def test_twenty_files_go_with_a_message_and_not_more(page: Client, ada: User) -> None:
    conversation = make_conversation(ada)
    files = [uploaded(page, f"{number}.txt") for number in range(21)]
    assert send(page, conversation, "Look", *files).json()["code"] == "too_many_attachments"
    assert send(page, conversation, "Look", *files[1:]).status_code == 202


def test_a_refused_message_leaves_its_files_free(page: Client, ada: User) -> None:
    row = uploaded(page)
    assert send(page, make_conversation(ada), "Look", row, uuid.uuid4()).status_code == 404
    row.refresh_from_db()
    assert row.conversation is None


def test_an_edited_message_keeps_its_files_unless_told_otherwise(page: Client, ada: User) -> None:
    conversation, row = make_conversation(ada), uploaded(page)
    send(page, conversation, "Look", row)
    message = conversation.messages.get()
    conversation.runs.update(status="cancelled", ended_at=timezone.now())
    edited = branching.edit_message(ada, message.id, "Look closely").message
    assert [file.id for file in Message.objects.get(id=edited.id).files] == [row.id]
    conversation.runs.update(status="cancelled", ended_at=timezone.now())
    assert branching.edit_message(ada, message.id, "No look", attachments=[]).message.files == []


def test_a_recalled_message_gives_its_files_back(page: Client, ada: User) -> None:
    conversation, row = make_conversation(ada), uploaded(page)
    run = make_run(make_message(conversation), "running")
    sent = services.send_message(ada, "And this", conversation_id=conversation.id, attachments=[row.id])
    assert sent.run == run
    recalling.recall_message(ada, sent.message.id)
    assert services.send_message(ada, "This", conversation_id=conversation.id, attachments=[row.id]).message.files


def test_files_go_with_their_conversation(
    page: Client, ada: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    conversation, row = make_conversation(ada), uploaded(page)
    send(page, conversation, "Look", row)
    with django_capture_on_commit_callbacks(execute=True):
        services.delete_conversation(ada, conversation.id)
    assert not Attachment.objects.exists()
    assert not row.path.exists()


def test_what_nobody_sent_is_swept_away(
    page: Client, ada: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    old, new, sent = uploaded(page, "old.txt"), uploaded(page, "new.txt"), uploaded(page, "sent.txt")
    send(page, make_conversation(ada), "Look", sent)
    before = timezone.now() - timedelta(days=UNSENT_DAYS, minutes=1)
    Attachment.objects.exclude(id=new.id).update(created_at=before)
    with django_capture_on_commit_callbacks(execute=True):
        sweep_attachments()
    assert set(Attachment.objects.values_list("id", flat=True)) == {new.id, sent.id}
    assert not old.path.exists()
    assert sent.path.exists()
