"""An endpoint that sends the key back, as some do in their errors: it reaches no run, page, answer or log."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.product import Person, Product, eventually

KEY = "canary-provider-key-51c9"

PLANT = """
from pydantic import SecretStr
from tools_admin.models import *
provider, _ = Provider.objects.get_or_create(name="Echo", base_url="{url}", defaults={{"api_key": SecretStr("{key}")}})
model, _ = LanguageModel.objects.get_or_create(provider=provider, name="echo-model")
before = LanguageModel.objects.filter(is_default=True).first()
LanguageModel.objects.update(is_default=False)
LanguageModel.objects.filter(pk=model.pk).update(is_default=True)
print(before.pk if before else 0, model.pk, provider.pk)
"""
REPAIR = """
from tools_admin.models import *
Provider.objects.filter(name="Echo").delete()
LanguageModel.objects.filter(pk={before}).update(is_default=True)
"""


class Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._refuse()

    def do_GET(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        sent = self.headers.get("Authorization", "")
        body = json.dumps({"error": {"message": f"Incorrect API key provided: {sent}", "code": sent}}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Silence."""


@pytest.fixture
def echo(product: Product) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    before, _model, provider = product.manage("shell", "--no-imports", "-c", PLANT.format(url=url, key=KEY)).split()
    yield provider
    product.manage("shell", "--no-imports", "-c", REPAIR.format(before=before))
    server.shutdown()
    server.server_close()


def test_a_key_that_an_endpoint_sends_back_is_shown_nowhere(product: Product, echo: str) -> None:
    person, admin = product.person(), product.person(staff=True)
    run = post(product, person, "/api/v1/runs", {"input": "Hello", "wait": 20})
    eventually(lambda: get(product, person, f"/api/v1/runs/{run['id']}")["status"] == "failed", "the run has failed")
    seen = [json.dumps(run)]
    for path in ("", "/calls", "/events"):
        seen.append(json.dumps(get(product, person, f"/api/v1/runs/{run['id']}{path}")))
    for who, path in [
        (person, f"/runs/{run['id']}/"),
        (person, "/runs/"),
        (admin, f"/runs/{run['id']}/"),
        (admin, "/admin/health/"),
        (admin, f"/admin/tools_admin/provider/{echo}/change/"),
        (admin, "/admin/"),
    ]:
        seen.append(page(product, who, path))
    seen += [product.log("web"), product.log("worker")]
    assert [text[max(0, text.find(KEY) - 200) :][:300] for text in seen if KEY in text] == []
    rows = product.sql("SELECT row_to_json(r)::text FROM conversations_run r WHERE id = %s", run["id"])
    assert KEY not in str(rows) and "echo-model" in str(rows)


def post(product: Product, person: Person, path: str, data: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {person.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(product.url + path, json.dumps(data).encode(), headers)  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def get(product: Product, person: Person, path: str) -> Any:
    request = urllib.request.Request(product.url + path, headers={"Authorization": f"Bearer {person.key}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def page(product: Product, person: Person, path: str) -> str:
    request = urllib.request.Request(product.url + path, headers={"Cookie": f"sessionid={person.session}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        assert answer.status == 200
        return str(answer.read().decode())
