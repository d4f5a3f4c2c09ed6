"""HTML as Markdown; tables and lists stay what they are."""

import re

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

from tools_admin.documents.readers import markdown
from tools_admin.documents.readers.sections import packed

# What is not the page's text.
NOISE = ["script", "style", "noscript", "template", "svg", "nav", "footer", "form", "iframe", "button"]


def read(data: bytes, max_chars: int) -> bytes:
    page = BeautifulSoup(data, "html.parser")
    for part in page(NOISE):
        part.decompose()
    title = " ".join(page.title.get_text().split()) if page.title else ""
    body = page.find("main") or page.find("article") or page.body or page
    if page.title:
        page.title.decompose()
    text = as_markdown(body)
    if title and not re.search(r"^# ", text, re.MULTILINE):
        text = f"# {title}\n\n{text}"
    return packed(markdown.sections(text), max_chars)


def as_markdown(part: Tag) -> str:
    converter = MarkdownConverter(
        strip=["img", "a"],
        heading_style="ATX",
        escape_asterisks=False,
        escape_underscores=False,
    )
    try:
        text = converter.convert_soup(part)
    except RecursionError:  # nested a thousand times: not for people
        text = part.get_text(" ")
    return re.sub(r"\n{3,}", "\n\n", text)
