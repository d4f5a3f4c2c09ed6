"""What the agent loop itself costs, beside other ways to run the same agent, measured in one go on this machine.

    python benchmarks/engine_loop.py            # ours, the bare `openai` client, the bare HTTP client
    python benchmarks/engine_loop.py --peers    # also pydantic-ai, langgraph, openai-agents (installed below var/)

The model is a local endpoint that answers at once, in a process of its own. Each contender is a process too, and its
CPU time is what is reported, imports and set-up excluded. A run is 20 calls of a tool, one at a time, and an answer.
All take turns, so that a busy moment of the machine hits each of them; figures are medians. Exits with 1 when an aim
is missed, which says nothing where other processes keep the machine busy: the load is printed with the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "benchmarks" / "engine_peers" / "requirements.txt"
ENVIRONMENT = ROOT / "var" / "benchmarks" / "engine_peers"

TITLES = {
    "ours": "agentapp.engine",
    "bare_client": "openai client, create()",
    "bare_http": "HTTP client alone",
    "pydantic_ai": "pydantic-ai",
    "langgraph": "langgraph",
    "openai_agents": "openai-agents",
}
PEERS = ("pydantic_ai", "langgraph", "openai_agents")
STEPS, RUNS, LATENCY = 20, 100, 0.05
EARLY, LATE = 5, 40
WORDS = 5_000
MESSAGES_BETWEEN = 2 * (LATE - EARLY)

Row = dict[str, float]
AIMS = {
    "iteration": ("CPU of an iteration", 1.0, "ms"),
    "growth": ("growth for each message of history", 1.0, "µs"),
    "wall": ("100 concurrent runs, wall", 2.5, "s"),
    "cpu": ("100 concurrent runs, CPU", 2.2, "s"),
    "adapter": ("CPU of a streamed token", 10.0, "µs"),
    "import": ("import of agentapp.engine", 0.7, "s"),
}


class Contender:
    """A worker process that measures when asked."""

    def __init__(self, name: str, python: str, urls: list[str]) -> None:
        command = [python, "-W", "ignore", "-m", "benchmarks.engine_peers.worker", name, *urls]
        self.name = name
        self.row: Row = {}
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, *what: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{TITLES[self.name]} failed; its error is above.")
        return json.loads(line)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def endpoint(latency: float) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.engine_peers.endpoint", str(latency)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.kill()


def peers_python() -> str:
    """The interpreter of the peers' own environment, which is made when it is missing or out of date."""
    stamp, wanted = ENVIRONMENT / "installed.txt", REQUIREMENTS.read_text()
    python = str(ENVIRONMENT / "bin" / "python")
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"Installing the peers into {ENVIRONMENT.relative_to(ROOT)}", flush=True)
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--disable-pip-version-check", "-qq", "-r", str(REQUIREMENTS)]
        subprocess.run(install, check=True)
        stamp.write_text(wanted)
    return python


def repeat(contenders: list[Contender], times: int, *what: Any) -> Iterator[tuple[Contender, list[Any]]]:
    """The answers of each to the same question, asked in turns."""
    answers: dict[str, list[Any]] = {contender.name: [] for contender in contenders}
    for _ in range(times):
        for contender in contenders:
            answers[contender.name].append(contender.measure(*what))
    return ((contender, answers[contender.name]) for contender in contenders)


def measure_loop(contenders: list[Contender], times: int) -> None:
    for contender in contenders:
        contender.measure("iteration", STEPS)  # connects and warms up
    for contender, seconds in repeat(contenders, times, "iteration", STEPS):
        contender.row["iteration"] = statistics.median(seconds) * 1e3
    for contender, pairs in repeat(contenders, times, "growth", EARLY, LATE):
        early, late = (statistics.median(column) for column in zip(*pairs, strict=True))
        contender.row |= {"early": early * 1e3, "late": late * 1e3}
        contender.row["growth"] = (late - early) / MESSAGES_BETWEEN * 1e6


def measure_concurrent(contenders: list[Contender], times: int) -> None:
    for contender, used in repeat(contenders, times, "concurrent", RUNS, STEPS):
        contender.row |= {name: statistics.median(each[name] for each in used) for name in ("wall", "cpu")}


def measure_streams(contenders: list[Contender], times: int) -> None:
    ours = [contender for contender in contenders if contender.name == "ours"]
    bare = [contender for contender in contenders if contender.name.startswith("bare")]
    for way, takers in (("adapter", ours + bare), ("answer", ours)):
        for contender, seconds in repeat(takers, times, "stream", way, WORDS):
            contender.row[way] = statistics.median(seconds) * 1e6


def import_seconds(times: int) -> float:
    code = "import time; t = time.perf_counter(); import agentapp.engine; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True) for _ in range(times)]
    return statistics.median(float(run.stdout) for run in runs)


def print_table(contenders: list[Contender], title: str, columns: dict[str, str]) -> None:
    print(f"\n{title}\n{'':26}" + "".join(f"{heading:>20}" for heading in columns.values()))
    for contender in contenders:
        if contender.row.keys() & columns.keys():
            cells = [f"{contender.row[name]:.2f}" if name in contender.row else "–" for name in columns]
            print(f"{TITLES[contender.name]:26}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def print_aims(row: Row) -> bool:
    print("\nAims of agentapp.engine")
    for name, (title, aim, unit) in AIMS.items():
        verdict = "met" if row[name] <= aim else "MISSED"
        print(f"{title:40} {row[name]:7.2f} {unit:2}   aim: at most {aim:g} {unit:2}   {verdict}")
    return all(row[name] <= aim for name, (_, aim, _) in AIMS.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="measure other agent libraries too")
    parser.add_argument("--repetitions", type=int, default=9, help="of each measure; a third of it for concurrent runs")
    options = parser.parse_args()
    pythons = dict.fromkeys(("ours", "bare_client", "bare_http"), sys.executable)
    if options.peers:
        pythons |= dict.fromkeys(PEERS, peers_python())
    times = options.repetitions
    with ExitStack() as stack:
        urls = [stack.enter_context(endpoint(latency)) for latency in (0.0, LATENCY)]
        contenders = [Contender(name, python, urls) for name, python in pythons.items()]
        for contender in contenders:
            stack.callback(contender.end)
        report(contenders, times)
    ours = contenders[0].row | {"import": import_seconds(times)}
    print(f"\n{os.cpu_count()} processors, load {' '.join(f'{load:.1f}' for load in os.getloadavg())}")
    return 0 if print_aims(ours) else 1


def report(contenders: list[Contender], times: int) -> None:
    sections: tuple[tuple[Callable[[list[Contender], int], None], int, str, dict[str, str]], ...] = (
        (
            measure_loop,
            times,
            f"CPU of an iteration: {STEPS} tool calls and an answer, events emitted",
            {
                "iteration": "ms",
                "early": f"ms at the {EARLY}th",
                "late": f"ms at the {LATE}th",
                "growth": "µs more a message",
            },
        ),
        (
            measure_concurrent,
            max(1, times // 3),
            f"{RUNS} such runs at once in one process, with a model that takes {LATENCY * 1e3:g} ms",
            {"wall": "s of wall time", "cpu": "s of CPU"},
        ),
        (
            measure_streams,
            times,
            f"CPU of a streamed token, of {WORDS:,}, each in an HTTP chunk of its own",
            {"adapter": "µs read", "answer": "µs as agent's event"},
        ),
    )
    for measure, repetitions, title, columns in sections:
        measure(contenders, repetitions)
        print_table(contenders, title, columns)


if __name__ == "__main__":
    sys.exit(main())
