"""Word documents, by way of HTML. Macros, pictures and links to elsewhere are not looked at."""

import io
import zipfile

import mammoth
from bs4 import BeautifulSoup

from agentapp.confined import Refused
from tools_admin.documents.readers import markdown
from tools_admin.documents.readers.html import as_markdown
from tools_admin.documents.readers.sections import packed

MAX_UNPACKED = 60_000_000  # of one part that is XML; pictures are never unpacked
MAX_RATIO = 300  # text that people wrote packs to a tenth
MAX_PARTS = 10_000


def read(data: bytes, max_chars: int) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            infos = parts.infolist()
    except zipfile.BadZipFile:
        raise Refused("broken") from None
    if len(infos) > MAX_PARTS or any(map(_explodes, infos)):
        raise Refused("memory")
    if any(part.flag_bits & 1 for part in infos) or not any(part.filename == "word/document.xml" for part in infos):
        raise Refused("broken")
    html = mammoth.convert_to_html(
        io.BytesIO(data), convert_image=mammoth.images.img_element(lambda image: {"src": ""})
    ).value
    return packed(markdown.sections(as_markdown(BeautifulSoup(html, "html.parser"))), max_chars)


def _explodes(part: zipfile.ZipInfo) -> bool:
    size = part.file_size if part.filename.lower().endswith((".xml", ".rels")) else 0
    return size > MAX_UNPACKED or (size > 1_000_000 and size > MAX_RATIO * part.compress_size)
