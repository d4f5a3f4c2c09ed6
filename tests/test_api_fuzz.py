"""Schemathesis makes up requests to all calls of the API's document, and judges the answers by it."""

import os
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Any

import httpx2
import pytest

from tests.product import Person, Product

CONFIG = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "3")  # of each call, after those that cover its schema
SEED = os.environ.get("FUZZ_SEED", "1")


@pytest.mark.parametrize("staff", [False, True], ids=["user", "administrator"])
def test_every_answer_is_a_documented_one(product: Product, tmp_path: Path, staff: bool) -> None:
    person = product.person(staff=staff)
    config = tmp_path / "schemathesis.toml"
    config.write_text(Template(CONFIG.read_text()).substitute(rows_of(product, person), key=person.key))
    program = Path(sys.executable).with_name("schemathesis")
    command = [program, "--no-color", f"--config-file={config}", "run", f"{product.url}/api/v1/openapi.json"]
    done = subprocess.run(
        [*command, "--max-examples", EXAMPLES, "--seed", SEED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def rows_of(product: Product, person: Person) -> dict[str, str]:
    """Ids of what the person has."""
    with httpx2.Client(base_url=f"{product.url}/api/v1", headers=person.bearer, timeout=60) as client:

        def made(path: str, **body: Any) -> dict[str, Any]:
            return dict(client.post(path, **body).raise_for_status().json())

        run = made("/runs", json={"input": "Hello", "wait": 30})
        files = [made("/attachments", files={"file": ("x.txt", b"x")}) for _ in range(2)]
        hook, spare = (
            made("/webhooks", json={"url": "http://127.0.0.1:9/", "events": ["run.finished"]}) for _ in range(2)
        )
        empty = made("/conversations", json={})
        delivery = made(f"/webhooks/{hook['id']}/ping")
    rows = {"run": run["id"], "conversation": run["conversation"], "message": run["message"]}
    rows |= {"attachment": files[0]["id"], "webhook": hook["id"], "delivery": delivery["id"]}
    spares = {"conversation": empty["id"], "attachment": files[1]["id"], "webhook": spare["id"]}
    return rows | {f"spare_{name}": number for name, number in spares.items()}
