"""Every picture that people are shown has been drawn anew: all the ways in, walked."""

import base64
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import models

from agentapp.database import in_thread
from agentapp.templatetags.frontend import ICONS
from conversations.artifacts import store_files
from conversations.files import serve
from conversations.models import PICTURES, Artifact, StoredFile
from tests.factories import make_conversation, make_message, make_run, make_user
from tests.pictures import SVG, opened, picture
from tools_admin.models import Agent

POLYGLOT = picture("GIF", comment=b"taken at home") + b"<script>alert(1)</script>"


def test_files_are_kept_in_two_rows_only_and_no_field_of_django_holds_any() -> None:
    ours = [m for m in apps.get_models() if m._meta.app_label in ("accounts", "tools_admin", "conversations")]
    fields = [field for model in ours for field in model._meta.get_fields() if isinstance(field, models.FileField)]
    assert fields == []
    assert {model.__name__ for model in ours if issubclass(model, StoredFile)} == {"Artifact", "Attachment"}
    assert {*PICTURES} == {"image/png", "image/jpeg"}


def test_an_agents_icon_is_one_of_ours() -> None:
    field: Any = Agent._meta.get_field("icon")
    assert {name for name, _ in field.choices} <= set(ICONS)


def test_pages_show_no_picture_from_elsewhere() -> None:
    """Every `img` of templates and scripts is in this list; the content policy allows our own addresses and data."""
    root = Path(settings.BASE_DIR)
    folders = [root / "templates", *(root / app for app in ("agentapp", "accounts", "tools_admin", "conversations"))]
    sources = [path for folder in folders for end in ("html", "js") for path in folder.rglob(f"*.{end}")]
    found = {path.name for path in sources if re.search(r"<img\b|h\(\"img\"", path.read_text())}
    second_factor = "activate_form.html"  # a code to scan, drawn by the server into the page
    assert found == {"_attachments.html", "file-list.js", "files.js", second_factor}


def artifact(content: bytes, kind: str = "image/png", name: str = "chart.gif") -> dict[str, Any]:
    return {"filename": name, "content_type": kind, "data": base64.b64encode(content).decode(), "size": len(content)}


@pytest.mark.django_db(transaction=True)
async def test_a_tools_picture_is_drawn_anew_and_what_cannot_be_is_no_picture() -> None:
    run = await in_thread(lambda: make_run(make_message(make_conversation(make_user()))))
    broken = b"\x89PNG\r\n\x1a\nx"
    given = [
        artifact(POLYGLOT, "text/html"),
        artifact(SVG, "image/svg+xml", "drawing.svg"),
        artifact(b"<script>", "image/png"),
        artifact(broken, "image/png", "broken.png"),
        {"filename": "x", "content_type": "image/png", "data": "!", "size": 1},
    ]
    kept = (await store_files(run.id, "react/1/tool/0", {"artifacts": given}))["artifacts"]
    rows = [await in_thread(Artifact.objects.get, id=uuid.UUID(file["id"])) for file in kept[:4]]
    drawn, *others = rows
    assert (drawn.filename, drawn.content_type) == ("chart.png", "image/png")
    stored = drawn.path.read_bytes()
    assert opened(stored).size == (40, 30)
    assert b"script" not in stored
    assert b"home" not in stored
    for row in rows:
        response = serve(row)
        response.close()
        assert (response["Content-Type"] in PICTURES) == (row == drawn)
    assert [row.path.read_bytes() for row in others] == [SVG, b"<script>", broken]
    assert "data" not in kept[4]
