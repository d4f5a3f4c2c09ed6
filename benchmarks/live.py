"""Answers streamed to many pages at once, through the whole product: model, worker, live log, web, WebSocket.

RUNS answers of TOKENS tokens each, one token every 5 ms, each watched over a WebSocket of its own. Every token carries
the time at which the model sent it. The model is a local fake and runs, like the clients, in a process of its own.
Usage: python -m benchmarks.live [RUNS] [TOKENS]
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from agentapp.embedded.testing import services
from tests.fake_model import FakeModel
from tests.product import AS_SHIPPED, Person, Product

ROOT = Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")
ALONE = 20


TOKEN_SECONDS = 0.005
AIMS = {"tokens/s": 9_000, "p95 delay ms": 80, "cpu µs a token": 30, "first token ms": 250, "added alone ms": 15}


class Elsewhere(FakeModel):
    """A model in a process of its own, which nobody starts or stops from here."""

    def start(self) -> FakeModel:
        return self


@dataclass
class Seen:
    """What one client saw: for each token when the model sent it and when it was here."""

    sent_at: float = 0.0
    run: str = ""
    tokens: list[tuple[float, float]] = field(default_factory=list)

    def take(self, text: str, now: float) -> None:
        self.tokens += [(float(word), now) for word in text.split()]


async def watch(socket: ClientConnection, number: int) -> Seen:
    seen = Seen(time.time())
    await socket.send(json.dumps({"type": "send", "client_id": f"{time.time()}-{number}", "content": "Count"}))
    rest = ""
    while True:
        body = json.loads(await asyncio.wait_for(socket.recv(), 60))
        now = time.time()
        if body.get("type") == "ack":
            seen.run = body["run"]
        if body.get("run") != seen.run or not seen.run:
            continue
        text = ""
        if body.get("type") == "snapshot":
            text = body["answer"]["text"]
        elif body.get("channel") == "answer" and body["data"]["status"] == "delta":
            text = body["data"]["content"]
        elif body.get("channel") == "done":
            if not seen.tokens:
                seen.take(body["data"]["answer"], now)
            return seen
        *whole, rest = (rest + text).split(" ")
        seen.take(" ".join(whole), now)


@asynccontextmanager
async def pages(product: Product, people: list[Person]) -> AsyncIterator[list[ClientConnection]]:
    """Sockets that are open already, as those of pages are."""
    address = f"{product.url.replace('http', 'ws')}/ws/"
    async with AsyncExitStack() as open_ones:
        yield [
            await open_ones.enter_async_context(connect(address, additional_headers=person.bearer)) for person in people
        ]


async def watch_all(sockets: list[ClientConnection]) -> list[Seen]:
    return list(await asyncio.gather(*(watch(socket, n) for n, socket in enumerate(sockets))))


@dataclass
class Used:
    """Processor time, taken again and again: of everything, and of the middle 80 % of the streaming."""

    processes: dict[str, int]
    samples: list[tuple[float, dict[str, float]]] = field(default_factory=list)

    async def watch(self) -> None:
        while True:
            self.samples.append((time.time(), cpu(self.processes)))
            await asyncio.sleep(0.02)

    def between(self, begin: float, end: float) -> dict[str, float]:
        first = next(used for at, used in self.samples if at >= begin)
        last = [used for at, used in self.samples if at <= end][-1]
        return {name: last[name] - first[name] for name in first}


async def measured(product: Product, people: list[Person], used: Used) -> list[Seen]:
    async with pages(product, people) as sockets:
        await watch_all(sockets)  # everything is loaded and connected
        sampling = asyncio.create_task(used.watch())
        await asyncio.sleep(0.1)
        seen = await watch_all(sockets)
        await asyncio.sleep(0.1)
        sampling.cancel()
    return seen


def middle(seen: list[Seen]) -> tuple[float, float, int]:
    """The middle 80 % of the time between the first token's arrival and the last one's, and the tokens in it."""
    arrivals = sorted(now for one in seen for _, now in one.tokens)
    length = arrivals[-1] - arrivals[0]
    begin, end = arrivals[0] + 0.1 * length, arrivals[-1] - 0.1 * length
    return begin, end, sum(begin <= at <= end for at in arrivals)


def parts(product: Product) -> dict[str, int]:
    """Process numbers; Valkey is a child of this process, as web and worker are."""
    found = {name: product.processes[name].pid for name in ("web", "worker")}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
        except OSError:
            continue
        if "valkey" in status.split(")")[0] and status.split(") ")[1].split()[1] == str(os.getpid()):
            found["valkey"] = int(folder.name)
    return found


def cpu(processes: dict[str, int]) -> dict[str, float]:
    """Seconds of processor time so far."""
    fields = {name: Path(f"/proc/{pid}/stat").read_text().split(") ")[1].split() for name, pid in processes.items()}
    return {name: (int(values[11]) + int(values[12])) / TICK for name, values in fields.items()}


def writes(product: Product) -> tuple[int, int]:
    """Transactions and written rows so far."""
    query = "SELECT xact_commit, tup_inserted + tup_updated FROM pg_stat_database WHERE datname = current_database()"
    time.sleep(1.5)  # the server publishes its statistics about once a second
    commits, rows = product.sql(query)[0]
    return commits, rows


@contextmanager
def model(tokens: int) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "benchmarks.live_model", str(tokens), str(TOKEN_SECONDS)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def alone(product: Product, person: Person) -> list[float]:
    """One run at a time: milliseconds from sending to the first token. The model answers at once."""
    async with pages(product, [person]) as sockets:
        times = [await watch_all(sockets) for _ in range(ALONE)]
    return [(seen.tokens[0][1] - seen.sent_at) * 1000 for [seen] in times[3:]]


def report(seen: list[Seen], used: Used) -> dict[str, float]:
    delays = sorted((now - sent) * 1000 for one in seen for sent, now in one.tokens)
    held = [(one.tokens[0][1] - one.tokens[0][0]) * 1000 for one in seen]
    firsts = [(one.tokens[0][1] - one.sent_at) * 1000 for one in seen]
    count, p95 = len(delays), delays[len(delays) * 95 // 100]
    begin, end, between = middle(seen)
    streaming, whole = used.between(begin, end), used.between(0, time.time())
    print(f"{len(seen)} runs, {count} tokens, load of the machine {os.getloadavg()[0]:.1f}")
    print(f"delay of a token: median {delays[count // 2]:.1f} ms, p95 {p95:.1f}, max {delays[-1]:.1f}")
    print(f"first token of an answer: delay median {statistics.median(held):.1f} ms, max {max(held):.1f}")
    for what, spent, tokens in (("streaming", streaming, between), ("with start and end of runs", whole, count)):
        print(f"processor µs a token, {what}: {', '.join(f'{n} {s / tokens * 1e6:.1f}' for n, s in spent.items())}")
    return {
        "tokens/s": between / (end - begin),
        "p95 delay ms": p95,
        "cpu µs a token": sum(streaming.values()) / between * 1e6,
        "first token ms": statistics.median(firsts),
    }


def main(runs: int, tokens: int) -> int:
    with tempfile.TemporaryDirectory() as folder, services() as environment, model(tokens) as endpoint:
        product = Product(environment, Path(folder), Elsewhere(port=int(endpoint.stdout.readline())))  # type: ignore[union-attr]
        product.environment |= {"MAX_RUNNING_RUNS": "0", **AS_SHIPPED}
        try:
            product.start()
            times = asyncio.run(alone(product, product.person()))
            before, used = writes(product), Used(parts(product))
            seen = asyncio.run(measured(product, [product.person() for _ in range(runs)], used))
            commits, rows = (after - then for after, then in zip(writes(product), before, strict=True))
        finally:
            product.stop()
    figures = report(seen, used) | {"added alone ms": statistics.median(times)}
    # Each of these runs has one iteration. Heartbeats and sweeps of the time in between are in it.
    print(f"PostgreSQL: {commits / runs / 2:.1f} commits and {rows / runs / 2:.1f} written rows a run of one iteration")
    for name, value in figures.items():
        print(f"{name:16} {value:9.1f}   aim {AIMS[name]}")
    return 1 if any((value < AIMS[name]) == (name == "tokens/s") for name, value in figures.items()) else 0


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:3]]
    sys.exit(main(*[*given, *(50, 500)[len(given) :]]))
