"""Cases of real answers: our own ones lie in `tests/data`; recorded ones are read where their folder is present."""

import json
from pathlib import Path
from typing import Any

OWN = Path(__file__).parents[1] / "data/engine"
RECORDED = Path(__file__).parents[3] / "shared/data"


def cases_of(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted([*(RECORDED / kind).glob("*.json"), *(OWN / kind).glob("*.json")]):
        data = json.loads(path.read_text())
        found |= {case["id"]: case for case in data.get("cases", [data])}
    return found
