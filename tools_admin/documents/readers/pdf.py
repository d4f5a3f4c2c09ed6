"""PDF, a section a page. Nothing in it is run, and no file that it names is opened."""

import io
import logging
import re
from collections.abc import Iterator

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from agentapp.confined import Refused
from tools_admin.documents.readers.sections import Found, packed

logging.disable()  # it warns of every small fault


def read(data: bytes, max_chars: int, max_pages: int) -> bytes:
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):  # many are locked against printing only
        raise Refused("encrypted")
    if len(reader.pages) > max_pages:
        raise Refused("too_many_pages")
    return packed(_pages(reader), max_chars)


def _pages(reader: PdfReader) -> Iterator[Found]:
    failures = 0
    for number, page in enumerate(reader.pages, start=1):
        try:
            text = page.extract_text()
        except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            failures += 1  # one damaged page leaves the others
            continue
        yield _joined(text), {"page": number}
    if failures and failures == len(reader.pages):
        raise Refused("broken")


def _joined(text: str) -> str:
    """Words that were divided at the end of a line are whole again."""
    return re.sub(r"(?<=[a-zäöüß])[-\u00ad]\n(?=[a-zäöüß])", "", text)
