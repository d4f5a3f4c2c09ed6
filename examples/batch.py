"""A batch job: one question a line in, one JSON object a line out, several at once, and safe to start again.

Each line has an id of its own, so a question that was asked before the job broke off is not asked (and paid for) twice.
It needs nothing but Python.
AGENTAPP_URL=http://127.0.0.1:8000 AGENTAPP_KEY=aa_… python examples/batch.py questions.txt answers.jsonl
"""

import hashlib
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

BASE = os.environ["AGENTAPP_URL"] + "/api/v1"
HEADERS = {"Authorization": f"Bearer {os.environ['AGENTAPP_KEY']}", "Content-Type": "application/json"}
AT_ONCE = 4
FINISHED = ("completed", "failed", "cancelled")


def call(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One request; waits as long as it is asked to when the limits are reached or the service is interrupted."""
    while True:
        try:
            data = json.dumps(body).encode() if body else None
            with urlopen(Request(BASE + path, data, HEADERS), timeout=90) as answer:
                result: dict[str, Any] = json.load(answer)
                return result
        except HTTPError as error:
            if error.code not in (429, 503):
                raise SystemExit(f"{path}: {error.code} {error.read().decode()}") from None
            time.sleep(int(error.headers.get("Retry-After", "5")))


def ask(job: str, number: int, question: str) -> dict[str, Any]:
    name = hashlib.sha256(f"{job}\n{number}\n{question}".encode()).hexdigest()[:32]
    run = call("/runs", {"input": question, "client_id": name, "wait": 60})
    while run["status"] not in FINISHED:
        time.sleep(2)
        run = call(f"/runs/{run['id']}")
    kept = {name: run[name] for name in ("status", "reason", "answer", "cost")}
    return {"line": number, "question": question, "run": run["id"], **kept}


def main(source: Path, target: Path) -> None:
    questions = [line.strip() for line in source.read_text().splitlines() if line.strip()]
    with ThreadPoolExecutor(AT_ONCE) as pool, target.open("w") as out:
        for result in pool.map(lambda item: ask(source.name, *item), enumerate(questions, 1)):
            out.write(json.dumps(result, ensure_ascii=False) + "\n")
    print(f"{len(questions)} answers are in {target}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
