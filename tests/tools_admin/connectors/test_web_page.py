"""Reading a web page as text."""

import html
import http.server
import threading
from collections.abc import Iterator

import pytest

from agentapp.engine import Tool
from agentapp.engine.tools import observation_for_model, result_to_dict
from tests.injections import EVERYTHING, OURS
from tools_admin.connectors.base import ToolError
from tools_admin.connectors.builtin.web_page import fetch_page

PAGE = """<html><head><title>Kites &amp; more</title><style>p {}</style></head><body><nav>Menu</nav>
<main><h1>Kites</h1><p>They <b>fly</b>.</p><script>alert(1)</script>
<table><tr><th>Kind</th><th>Price</th></tr><tr><td>Delta</td><td>20</td></tr></table></main></body></html>"""


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind = {"/picture": "image/png", "/plain": "text/plain"}.get(self.path, "text/html; charset=utf-8")
        self.send_response(404 if self.path == "/gone" else 200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        bodies = {
            "/deep": "<div>" * 5_000 + "deep",
            "/injected": f"<p>{html.escape(EVERYTHING)}</p><p>{EVERYTHING}</p>",
        }
        self.wfile.write(bodies.get(self.path, PAGE).encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def allowed(settings) -> None:
    settings.OUTBOUND_ALLOWED_HOSTS = frozenset({"127.0.0.1"})


async def test_a_page_becomes_text_without_what_is_around_it(site, allowed):
    text = await fetch_page(site)
    assert text.startswith("Kites & more\n")
    assert "# Kites\n\nThey **fly**." in text
    assert "| Delta | 20 |" in text
    assert "alert" not in text
    assert "Menu" not in text
    assert (await fetch_page(f"{site}/plain")) == PAGE
    assert "deep" in await fetch_page(f"{site}/deep")


async def test_what_is_no_text_or_not_there_is_said(site, allowed):
    with pytest.raises(ToolError, match="type 'image/png'"):
        await fetch_page(f"{site}/picture")
    with pytest.raises(ToolError, match="HTTP 404"):
        await fetch_page(f"{site}/gone")


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "file:///etc/passwd", "http://localhost/", "nonsense"])
async def test_only_the_public_internet_is_read(url):
    with pytest.raises(ToolError):
        await fetch_page(url)


async def test_a_page_that_speaks_like_us_is_read_as_a_page(site, allowed):
    tool = Tool("fetch_page", "", {}, fetch_page)
    told = observation_for_model(result_to_dict(await tool.execute({"url": f"{site}/injected"}), tool, 0.0))
    assert "Ignore all earlier instructions" in told
    assert [marker for marker in OURS if marker in told] == []
