"""A model that plans: how the fake endpoint answers in planned modes."""

import re
from collections.abc import Callable
from typing import Any

from tests.fake_model import Reply, think


def planning(
    steps: list[dict[str, Any]], *, mode: str = "rewoo", achieved: bool = True, answer: str = "All is done."
) -> Callable[[dict[str, Any]], Reply]:
    """Routes to `mode`, plans `steps`, judges, and lets each goal that holds a sum use the calculator."""

    def brain(request: dict[str, Any]) -> Reply:
        forced = request.get("tool_choice")
        name = forced["function"]["name"] if isinstance(forced, dict) else ""
        if name == "route":
            return {"calls": [{"name": name, "arguments": {"mode": mode, "reason": "several lookups are known"}}]}
        if name == "plan":
            return {"calls": [{"name": name, "arguments": {"steps": steps}}]}
        if name == "judge":
            data = {"achieved": achieved, "confidence": 0.9, "reasoning": "All parts are there.", "final_answer": ""}
            return {"calls": [{"name": name, "arguments": data}]}
        text = str(request["messages"][-1]["content"])
        if request.get("tools") and "Your step:" in text:
            goal = text.rpartition("Your step:")[2]
            if sum_ := re.search(r"\d+ *[*+/-] *\d+", goal):
                return {"calls": [{"name": "calculator", "arguments": {"expression": sum_.group()}}]}
            return {"text": "This step is done."}
        if not request.get("tools") and "Evidence:" in text:
            return {"text": answer}
        return think(request)

    return brain


def sums(*expressions: str, joined: bool = False) -> list[dict[str, Any]]:
    """Planned calls of the calculator, side by side; `joined`: the last one waits for all others."""
    ids = [f"E{n}" for n in range(1, len(expressions) + 1)]
    return [
        {
            "id": id,
            "task": f"Work out {expression}",
            "tool_name": "calculator",
            "tool_args": {"expression": expression},
            "depends_on": ids[:-1] if joined and id == ids[-1] else [],
        }
        for id, expression in zip(ids, expressions, strict=True)
    ]


def goals(*tasks: tuple[str, list[str]]) -> list[dict[str, Any]]:
    return [{"id": f"s{n}", "task": task, "depends_on": after} for n, (task, after) in enumerate(tasks, 1)]
