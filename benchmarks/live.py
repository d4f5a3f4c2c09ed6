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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from agentapp.embedded.testing import services
from tests.fake_model import FakeModel
from tests.product import Person, Product

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


async def watch_all(product: Product, people: list[Person]) -> list[Seen]:
    address = f"{product.url.replace('http', 'ws')}/ws/"
    sockets = [await connect(address, additional_headers=person.bearer) for person in people]
    try:
        return list(await asyncio.gather(*(watch(socket, n) for n, socket in enumerate(sockets))))
    finally:
        for socket in sockets:
            await socket.close()


def middle_rate(seen: list[Seen]) -> float:
    """Tokens a second that arrived in the middle 80 % of the time between the first and the last."""
    arrivals = sorted(now for one in seen for _, now in one.tokens)
    length = arrivals[-1] - arrivals[0]
    begin, end = arrivals[0] + 0.1 * length, arrivals[-1] - 0.1 * length
    return sum(begin <= at <= end for at in arrivals) / (end - begin)


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


def said(process: "subprocess.Popen[str]") -> float:
    assert process.stdout is not None
    return float(process.stdout.readline())


async def alone(product: Product, person: Person, endpoint: "subprocess.Popen[str]") -> list[tuple[float, float]]:
    """One run at a time: milliseconds from sending to the first token, and to the model's first token."""
    times = []
    for _ in range(ALONE):
        [seen] = await watch_all(product, [person])
        said(endpoint)
        sent, arrived = seen.tokens[0]
        times.append(((arrived - seen.sent_at) * 1000, (arrived - sent) * 1000))
    return times[3:]


def report(seen: list[Seen], used: dict[str, float], wrote: tuple[int, int]) -> dict[str, float]:
    delays = sorted((now - sent) * 1000 for one in seen for sent, now in one.tokens)
    firsts = sorted((one.tokens[0][1] - one.sent_at) * 1000 for one in seen)
    count, runs = len(delays), len(seen)
    print(f"{runs} runs, {count} tokens, load of the machine {os.getloadavg()[0]:.1f}")
    print(
        f"delay of a token: median {delays[count // 2]:.1f} ms, p95 {delays[count * 95 // 100]:.1f}, max {delays[-1]:.1f}"
    )
    first_delays = sorted((now - sent) * 1000 for sent, now in (one.tokens[0] for one in seen))
    print(
        f"first token of an answer: delay median {statistics.median(first_delays):.1f} ms, max {first_delays[-1]:.1f}"
    )
    print("processor time a token: " + ", ".join(f"{name} {used[name] / count * 1e6:.1f} µs" for name in used))
    print(f"PostgreSQL: {wrote[0] / runs:.1f} commits and {wrote[1] / runs:.1f} written rows a run")
    return {
        "tokens/s": middle_rate(seen),
        "p95 delay ms": p95,
        "cpu µs a token": sum(used.values()) / count * 1e6,
        "first token ms": statistics.median(firsts),
    }


def main(runs: int, tokens: int) -> int:
    with tempfile.TemporaryDirectory() as folder, services() as environment, model(tokens) as endpoint:
        product = Product(environment, Path(folder), Elsewhere(port=int(said(endpoint))))
        product.start()
        try:
            times = asyncio.run(alone(product, product.person(), endpoint))
            people = [product.person() for _ in range(runs)]
            asyncio.run(watch_all(product, people))  # warm
            before, processes = writes(product), parts(product)
            began = cpu(processes)
            seen = asyncio.run(watch_all(product, people))
            used = {name: seconds - began[name] for name, seconds in cpu(processes).items()}
            after = writes(product)
        finally:
            product.stop()
    figures = report(seen, used, (after[0] - before[0], after[1] - before[1]))
    figures["added alone ms"] = statistics.median(total for total, _ in times)
    print(f"alone: of these {statistics.median(after for _, after in times):.1f} ms after the model's first token")
    for name, value in figures.items():
        print(f"{name:16} {value:9.1f}   aim {AIMS[name]}")
    worse = [name for name, value in figures.items() if (value < AIMS[name]) == (name == "tokens/s")]
    return 1 if worse else 0


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:3]]
    sys.exit(main(*[*given, *(50, 500)[len(given) :]]))
