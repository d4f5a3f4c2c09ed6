"""A check of the real thing: llama.cpp's server with the weights of the demo model, where they are."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from agentapp.embedded.environment import CHECKOUT
from tests.product import free_port
from tools_admin import checks
from tools_admin.checking import check_model, list_models
from tools_admin.clients import ModelClients
from tools_admin.models import LanguageModel, Provider

WEIGHTS = CHECKOUT / "var/demo_model/model.gguf"  # put there by `make run`
KEY = "sk-local-canary"
SERVE = """
import sys, threading
from pathlib import Path
from agentapp.embedded import demo_model
server = demo_model.serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
print("ready", flush=True)
threading.Event().wait()
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WEIGHTS.is_file(), reason="the weights of the demo model are not here"),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    address = f"http://127.0.0.1:{free_port()}/v1"
    command = [sys.executable, "-c", SERVE, str(WEIGHTS), address, KEY]
    server = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        assert any(line.strip() == "ready" for line in server.stdout)
        yield address
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def row(url: str, key: str = KEY) -> LanguageModel:
    provider = Provider(pk=1, name="llama", preset="llamacpp", base_url=url, api_key=SecretStr(key))
    extra = {"max_tokens": 100, "temperature": 0}
    return LanguageModel(pk=1, provider=provider, name="demo", extra_body=extra)


async def test_the_demo_model_is_measured(url: str) -> None:
    clients, model = ModelClients(), row(url)
    listed, result = await list_models(model.provider, clients), await check_model(model, clients)
    await clients.aclose()
    assert [found["id"] for found in listed["models"]] and listed["models"][0]["context_size"] >= 4_096
    assert "error" not in result
    found = {name: result["abilities"][name]["ok"] for name in checks.MEASURED}
    assert found["streaming"] and found["stream_usage"] and found["json_schema"]
    assert found["vision"] is False
    assert result["first_token"] > 0


async def test_a_wrong_key_is_told_in_the_servers_words(url: str) -> None:
    clients, model = ModelClients(), row(url, "sk-wrong-canary")
    result = await check_model(model, clients)
    await clients.aclose()
    assert result["error"].startswith("HTTP 401") and "sk-wrong-canary" not in result["error"]
