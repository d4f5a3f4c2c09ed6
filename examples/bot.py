"""A bot that keeps a conversation: each line that comes in is a message, each answer streams out as it is written.

Put your chat system in the place of standard input and output. It needs nothing but Python.
AGENTAPP_URL=http://127.0.0.1:8000 AGENTAPP_KEY=aa_… python examples/bot.py
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

BASE = os.environ["AGENTAPP_URL"] + "/api/v1"
HEADERS = {"Authorization": f"Bearer {os.environ['AGENTAPP_KEY']}", "Content-Type": "application/json"}


def call(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Posts the body, or reads where there is none."""
    request = Request(BASE + path, None if body is None else json.dumps(body).encode(), HEADERS)
    with urlopen(request, timeout=30) as answer:
        result: dict[str, Any] = json.load(answer)
        return result


def events(run: str) -> Iterator[dict[str, Any]]:
    """Everything that happens in a run, until it has ended."""
    request = Request(f"{BASE}/runs/{run}/events", headers={**HEADERS, "Accept": "text/event-stream"})
    with urlopen(request, timeout=120) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def show(run: str) -> None:
    """Writes the answer while it comes in; what a tool does is told in between."""
    shown = 0
    for event in events(run):
        channel, data = event["channel"], event["data"]
        if channel == "step" and data["type"] == "iteration" and data["status"] == "start":
            print(f"[{data['tool_name']} …]")
        elif channel == "approval" and data["status"] == "pending":
            print(f"[waits for a person: {data['tool_name']}]")
        elif channel == "answer" and data["status"] == "start":
            shown = 0  # a new attempt: the text begins again
        elif channel == "answer" and data["status"] == "delta":
            print(data["content"][max(0, shown - data["offset"]) :], end="", flush=True)
            shown = data["offset"] + len(data["content"])
        elif channel == "done" and data["status"] != "completed":
            print(f"[{data['status']}: {data['reason']}]", end="")
        elif channel == "done" and not shown:  # it was written before the stream began
            print(call(f"/runs/{run}")["answer"], end="")
    print()


def main() -> None:
    conversation = None
    for line in sys.stdin:
        if not line.strip():
            continue
        if conversation is None:
            run = call("/runs", {"input": line})
            conversation, run_id = run["conversation"], run["id"]
        else:
            run_id = call(f"/conversations/{conversation}/messages", {"content": line})["run"]
        show(run_id)


if __name__ == "__main__":
    main()
