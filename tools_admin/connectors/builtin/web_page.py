from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from django.conf import settings

from agentapp.outbound import OutboundError, Policy, fetch
from tools_admin.connectors.base import ToolError

if TYPE_CHECKING:
    import httpx2

MAX_BYTES = 3_000_000
SECONDS = 30.0
TYPES = ("text/", "application/json", "application/xml", "application/xhtml+xml", "application/rss+xml")
# What is not the page's text.
NOISE = ["script", "style", "noscript", "template", "svg", "nav", "footer", "form", "iframe", "button"]


async def fetch_page(url: str) -> str:
    """The page's text as Markdown; raises `ToolError` for what cannot or must not be reached, and for other files."""
    policy = Policy(frozenset(settings.OUTBOUND_ALLOWED_HOSTS), MAX_BYTES)
    try:
        response = await fetch(
            "GET", url, policy=policy, headers={"Accept": "text/html, */*"}, types=TYPES, timeout=SECONDS
        )
    except OutboundError as error:
        raise ToolError(str(error)) from None
    if response.status_code >= 400:
        raise ToolError(f"The server answers with HTTP {response.status_code}.")
    return await asyncio.to_thread(_as_text, response)


def _as_text(response: httpx2.Response) -> str:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("text/html", "application/xhtml+xml"):
        return response.text
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    page = BeautifulSoup(response.content, "html.parser")
    for part in page(NOISE):
        part.decompose()
    title = " ".join(page.title.get_text().split()) if page.title else ""
    body = page.find("main") or page.find("article") or page.body or page
    try:
        text = MarkdownConverter(strip=["img"], heading_style="ATX").convert_soup(body)
    except RecursionError:  # nested a thousand times: not for people
        text = body.get_text(" ")
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]
    return f"{title}\n{response.url}\n\n{chr(10).join(kept).strip()}"
