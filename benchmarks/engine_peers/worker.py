"""One contender in a process of its own, which measures what it is told to on standard input.

Each line is a JSON list, a measure and its arguments; each gets a line of JSON back. Standard library only, since
the contenders live in different environments: `python -m benchmarks.engine_peers.worker NAME URL SLOW_URL`.
"""

import asyncio
import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

RESULT = "An observation of ordinary length, as a search, a query or a page would give it. " * 6


class Lookup:
    """The tool of all contenders. It notes how much CPU the process had used at each call."""

    def __init__(self) -> None:
        self.marks: list[float] = []

    def __call__(self, number: int) -> str:
        self.marks.append(time.process_time())
        return f"{number}: {RESULT}"


class Worker:
    """`prepare(url, lookup)` of a contender gives its `run(steps)`; `streams(url)`, its ways to read `words` tokens."""

    def __init__(self, name: str, url: str, slow_url: str) -> None:
        contender = importlib.import_module(f"benchmarks.engine_peers.{name}")
        self.lookup = Lookup()
        self.run: Callable[[int], Awaitable[None]] = contender.prepare(url, self.lookup)
        self.run_slow: Callable[[int], Awaitable[None]] = contender.prepare(slow_url, self.lookup)
        self.streams = contender.streams(url) if hasattr(contender, "streams") else {}

    async def iteration(self, steps: int) -> float:
        """CPU seconds of an iteration, the final answer being part of the last one."""
        return (await self._measured(self.run, steps))["cpu"] / steps

    async def growth(self, early: int, late: int) -> list[float]:
        """CPU seconds of an iteration around `early` and around `late`, within the same run."""
        await self._measured(self.run, late + 2)
        return [(self.lookup.marks[at + 1] - self.lookup.marks[at - 3]) / 4 for at in (early, late)]

    async def concurrent(self, runs: int, steps: int) -> dict[str, float]:
        async def all_runs(steps: int) -> None:
            await asyncio.gather(*(self.run_slow(steps) for _ in range(runs)))

        return await self._measured(all_runs, steps, runs)

    async def stream(self, way: str, words: int) -> float:
        """CPU seconds of a streamed token."""
        began = time.process_time()
        read = await self.streams[way](words)
        assert read == words, f"{read} tokens instead of {words}"
        return (time.process_time() - began) / words

    async def _measured(self, run: Callable[[int], Awaitable[None]], steps: int, runs: int = 1) -> dict[str, float]:
        self.lookup.marks.clear()
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        await run(steps)
        used = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        assert len(self.lookup.marks) == runs * steps, f"{len(self.lookup.marks)} calls instead of {runs * steps}"
        return used


async def serve(worker: Worker, answers: Any) -> None:
    for line in sys.stdin:
        measure, *arguments = json.loads(line)
        print(json.dumps(await getattr(worker, measure)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    # Whatever a library prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    asyncio.run(serve(Worker(*sys.argv[1:]), answers))
