"""The product under attack, and what must be true of every run whatever happened."""

import copy
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conversations.test_main_job import call
from tests.fake_model import FakeModel, Reply, think
from tests.installation import Installation
from tests.product import Person, eventually, free_port

SEED = """
import tests.chaos.effects
from tools_admin.models import Agent, LanguageModel, Tool
from tools_admin.seeding import seed
seed()
Tool.objects.update(approval="never")
Agent.objects.get(is_default=True).tools.set(Tool.objects.all())
LanguageModel.objects.update(input_price=1_000_000, output_price=10_000_000)
"""


class Chaos(Installation):
    """Workers have tools that leave lines in a file (`tests.chaos.effects`); the model refuses an unpaired history."""

    def __init__(self, folder: Path, model: FakeModel) -> None:
        super().__init__(folder, model)
        self.effects = folder / "effects"
        self.effects.mkdir()
        self.environment |= {
            "EFFECTS_FOLDER": str(self.effects),
            "RUN_LEASE_SECONDS": "2",
            "RUN_HEARTBEAT_SECONDS": "0.5",
            "SWEEP_SECONDS": "0.5",
        }
        self.commands["worker"] = ["-m", "tests.chaos.effects"]
        self.brain = self.answer
        self.faults: list[str] = []
        self.unpaid_before = 0

    def start(self) -> None:
        super().start()
        self.manage("shell", "--no-imports", "-c", SEED)

    def restore(self) -> None:
        (self.effects / "hold").unlink(missing_ok=True)
        (self.effects / "holding").unlink(missing_ok=True)
        super().restore()

    def answer(self, request: dict[str, Any]) -> Reply:
        """Told "use append_once hold_line on X" it makes these calls in one reply, then an answer; else `think`."""
        if fault := _unpaired(request["messages"]):
            self.faults.append(fault)
            return {"status": 400, "error": fault}
        order = _order(request["messages"])
        if order is None:
            return think(request)
        if request.get("tools") and not any(m["role"] == "tool" for m in request["messages"]):
            return {"calls": [{"name": name, "arguments": {"text": order[2]}} for name in order[1].split()]}
        return {"text": f"Done with {order[2]}."}

    def die_at(self, point: str, name: str = "worker") -> "subprocess.Popen[bytes]":
        """Replaces a process by one that will kill itself at this point."""
        self.end(name)
        return self.spawn(name, self.commands[name], CRASH_AT=point)

    @contextmanager
    def another_web(self) -> Iterator["Chaos"]:
        """The same installation as seen through a second web process."""
        other = copy.copy(self)
        other.port = free_port()
        other.url = f"http://127.0.0.1:{other.port}"
        command = [str(other.port) if part == str(self.port) else part for part in self.commands["web"]]
        self.spawn("other web", command)
        try:
            eventually(other.is_ready, "the other web process is ready")
            yield other
        finally:
            self.end("other web")

    def hold(self) -> None:
        (self.effects / "hold").touch()

    def is_holding(self) -> bool:
        return (self.effects / "holding").exists()

    def lines(self, text: str, file: str = "lines") -> list[str]:
        """Positions of the calls that wrote this text; with `keys` their idempotency keys."""
        path = self.effects / file
        rows = [line.split(" ", 1) for line in path.read_text().splitlines()] if path.exists() else []
        return [key for key, written in rows if written == text]

    def ask(self, person: Person, text: str) -> dict[str, Any]:
        run: dict[str, Any] = call(self, person, "POST", "/api/v1/runs", {"input": text})[1]
        return run

    def run(self, person: Person, run: str) -> dict[str, Any]:
        state: dict[str, Any] = call(self, person, "GET", f"/api/v1/runs/{run}")[1]
        return state

    def ended(self, person: Person, run: str, seconds: float = 60) -> dict[str, Any]:
        """The run after its end, with everything that is true of every ended run."""
        state: dict[str, Any] = eventually(
            lambda: (r := self.run(person, run)).get("ended_at") and r, f"run {run} has ended", seconds
        )
        self.check(run)
        return state

    def waiting(self, person: Person, run: str, reason: str) -> dict[str, Any]:
        state: dict[str, Any] = eventually(
            lambda: (r := self.run(person, run)).get("status") == "waiting" and r, f"run {run} waits", 60
        )
        assert state["reason"] == reason
        return state

    def events(self, run: str, channel: str, status: str) -> int:
        query = (
            "SELECT count(*) FROM conversations_runevent WHERE run_id = %s AND channel = %s AND data->>'status' = %s"
        )
        return int(self.sql(query, run, channel, status)[0][0])

    def check(self, run: str) -> None:
        events = self.sql("SELECT seq, channel, data FROM conversations_runevent WHERE run_id = %s ORDER BY seq", run)
        assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1)), "seq has a gap"
        channels = [channel for _, channel, _ in events]
        assert channels.count("done") == 1, channels
        assert channels[-1] == "done", channels
        steps = [data for _, channel, data in events if channel == "step" and data["type"] != "answer"]
        begun, done = ([_step(data) for data in steps if data["status"] == status] for status in ("start", "done"))
        assert sorted(begun) == sorted(done), "a step has no end, or two"
        attempts = [data["attempt"] for _, channel, data in events if channel == "answer" and data["status"] == "start"]
        assert attempts == list(range(1, len(attempts) + 1))
        lease = self.sql("SELECT lease_owner, lease_expires_at FROM conversations_run WHERE id = %s", run)
        assert lease == [("", None)], "a lease is left"
        answers = "SELECT count(*) FROM conversations_message WHERE run_id = %s AND role = 'assistant'"
        assert self.sql(answers, run)[0][0] <= 1, "two answers"
        open_calls = "SELECT key FROM conversations_call WHERE run_id = %s AND state = 'started'"
        assert self.sql(open_calls, run) == [], "a call has no end"
        assert self.faults == []
        self.check_budget(run)

    def check_budget(self, run: str) -> None:
        """All that the model was asked since the person came is paid for, and the record has the same sum."""
        from conversations.balances import SUMS  # read after the settings are

        ((budget,),) = self.sql(
            "SELECT b.id FROM accounts_budget b JOIN conversations_run r USING (user_id) WHERE r.id = %s", run
        )
        asked = len(self.model.requests) - self.model.refused - self.unpaid_before
        used, recorded = next((used, recorded) for key, used, recorded in self.sql(SUMS) if key == budget)
        assert used == recorded
        assert used >= asked * 100, "a call is unpaid: each takes 100 tokens and more"


def died(process: "subprocess.Popen[bytes]") -> None:
    """Waits until it has killed itself."""
    eventually(lambda: process.poll() is not None, "the process dies at its point")
    assert process.returncode == -signal.SIGKILL


def _step(data: dict[str, Any]) -> tuple[str, int, str]:
    return data["type"], data["iteration"], data.get("call_id", "")


def _order(messages: list[dict[str, Any]]) -> re.Match[str] | None:
    """What this turn's own message asks for."""
    texts = [m["content"] for m in messages if m["role"] == "user" and isinstance(m["content"], str)]
    own = next((text for text in reversed(texts) if not text.startswith("[USER INTERRUPT]")), "")
    return re.search(r"use ([a-z_ ]+) on (\S+)", own)


def _unpaired(messages: list[dict[str, Any]]) -> str:
    """What a strict provider would say about this history: each call has its result right behind its message."""
    owed: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in owed:
                return "a result without its call"
            owed.remove(message["tool_call_id"])
            continue
        if owed:
            return f"calls without results before a message of {message['role']}"
        owed = [made["id"] for made in message.get("tool_calls") or ()]
    return "calls without results at the end" if owed else ""
