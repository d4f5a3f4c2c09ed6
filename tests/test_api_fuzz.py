"""Schemathesis makes up requests to all calls of the API's documents, and judges the answers by them."""

import json
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from string import Template
from typing import Any

import pytest

from tests.product import Person, Product

CONFIG = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "3")  # of each call, after those that cover its schema
SEED = int(os.environ.get("FUZZ_SEED", "1"))
SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))  # of each cast: rounds with fresh rows and further seeds
LOG = os.environ.get("FUZZ_LOG")  # a file that gets all reports, of what went well too
# Requests that cover a document are the same for both casts, and many: when time is short each cast sends those of one.
COVERED = {"api/v1": False, "v1": True}


@pytest.mark.parametrize("staff", [False, True], ids=["user", "administrator"])
def test_every_answer_is_a_documented_one(product: Product, tmp_path: Path, staff: bool) -> None:
    seeds, end = count(SEED), time.monotonic() + SECONDS
    while True:
        person, seed = product.person(staff=staff), next(seeds)  # runs that never end count against a person's limit
        for document in ("api/v1", "v1"):
            assert _fuzzed(product, person, document, tmp_path, seed) == ""
        if time.monotonic() >= end:
            break


def _fuzzed(product: Product, person: Person, document: str, folder: Path, seed: int) -> str:
    """What was found; empty when all is well."""
    config = folder / "schemathesis.toml"
    config.write_text(Template(CONFIG.read_text()).substitute(_rows_of(product, person), key=person.key))
    program = Path(sys.executable).with_name("schemathesis")
    command = [program, "--no-color", f"--config-file={config}", "run", f"{product.url}/{document}/openapi.json"]
    if not SECONDS and COVERED[document] != person.staff:
        command += ["--phases", "examples,fuzzing,stateful"]
    done = subprocess.run(
        [*command, "--max-examples", EXAMPLES, "--seed", str(seed)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if LOG:
        with Path(LOG).open("a") as log:
            log.write(f"{document} {person.staff=} {seed=} {done.returncode=}\n{done.stdout}{done.stderr}\n")
    return done.stdout + done.stderr if done.returncode else ""


def _rows_of(product: Product, person: Person) -> dict[str, str]:
    code = f"import json; from tests.fuzz_rows import rows_of; print(json.dumps(rows_of({person.id})))"
    rows: dict[str, list[Any]] = json.loads(product.manage("shell", "--no-imports", "-c", code))
    accept = "text/event-stream" if person.staff else "application/json"
    return {name: json.dumps(values) for name, values in rows.items()} | {
        "an_agent": str(rows["agent"][0]),
        "accept": accept,
    }
