"""The German pages. The compiled catalogues are in the repository: machines need no gettext."""

import gettext
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from accounts.models import User

CATALOGUES = Path(settings.BASE_DIR) / "locale" / "de" / "LC_MESSAGES"


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_every_text_is_translated_and_compiled(domain: str) -> None:
    with (CATALOGUES / f"{domain}.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    source = (CATALOGUES / f"{domain}.po").read_text()
    pairs = re.findall(r'^msgid "(.+)"\n(?:msgid_plural .*\n)?msgstr(?:\[0\])? "(.*)"$', source, re.MULTILINE)
    assert len(pairs) > 50
    for text, translation in ((a.replace('\\"', '"'), b.replace('\\"', '"')) for a, b in pairs):
        assert translation, f"not translated: {text}"
        known = (compiled.gettext(text), compiled.ngettext(text, text, 1))
        assert translation in known, f"compile again: {text}"
        places = [sorted(re.findall(r"%\(\w+\)\w", words)) for words in (text, translation)]
        assert places[0] == places[1], text


@pytest.mark.django_db
def test_pages_speak_the_readers_language(client: Client) -> None:
    client.force_login(User.objects.create_user("ada", "ada@example.org", "a-long-password"))
    html = client.get("/", headers={"accept-language": "de"}).content.decode()
    assert '<html lang="de"' in html
    assert "Was möchten Sie wissen?" in html
    script = client.get("/jsi18n/", headers={"accept-language": "de"}).content.decode()
    assert "Schreibt die Antwort" in script
