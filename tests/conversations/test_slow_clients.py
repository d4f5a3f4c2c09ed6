"""A client that does not read: it is cut off and comes back; nobody else feels it, and the memory stays bounded."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import httpx2
import pytest
import redis
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from conversations.events import deltas
from tests.conversations.test_socket import Page, page, send
from tests.product import Person, Product, eventually

DELTAS, SIZE = 2_000, 8_000
AHEAD = 60  # deltas by which the log may be ahead of a page that reads: half of what is kept for it


def memory_mb(product: Product) -> float:
    status = Path(f"/proc/{product.processes['web'].pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


@pytest.fixture
def log(product: Product) -> Iterator[redis.Redis]:
    """The live channel; with no worker there, a run's log is the test's own."""
    product.end("worker")
    with redis.Redis.from_url(product.environment["REDIS_URL"], protocol=2) as client:
        yield client


def flood(log: redis.Redis, run: str, pace: threading.Semaphore | None = None) -> str:
    """An answer of 8 KB a delta, as fast as the log takes it, or as the page reads that gives the pace."""
    for number in range(DELTAS):
        if pace:
            pace.acquire()
        [body] = deltas(UUID(run), f"{number:08}" * (SIZE // 8), number * SIZE, 1)
        log.xadd(f"run:{run}", {"-": body})
    return "".join(f"{number:08}" * (SIZE // 8) for number in range(DELTAS))


def read_all(mine: Page, pace: threading.Semaphore) -> None:
    """Reads as fast as it can until the whole flood is there."""
    length = 0
    while length < DELTAS * SIZE:
        body = json.loads(mine.socket.recv(timeout=20))
        if body.get("channel") == "answer":
            assert body["data"]["offset"] == length
            length += len(body["data"]["content"])
            pace.release()


def start(log: redis.Redis, mine: Page) -> tuple[str, str]:
    ack = send(mine, "Tell a long story")
    return ack["conversation"], ack["run"]


def test_a_stalled_page_is_cut_off_and_comes_back_to_the_same_text(
    product: Product, person: Person, log: redis.Redis
) -> None:
    address = f"{product.url.replace('http', 'ws')}/ws/"
    with page(product, person) as fast:
        conversation, run = start(log, fast)
        written: list[str] = []
        with connect(address, additional_headers=person.bearer, max_queue=1) as stalled:
            Page(stalled).send(type="watch", conversation=conversation)
            before = memory_mb(product)
            pace = threading.Semaphore(AHEAD)
            writer = threading.Thread(target=lambda: written.append(flood(log, run, pace)), daemon=True)
            writer.start()
            read_all(fast, pace)
            writer.join()
            assert memory_mb(product) - before < 24, "the stalled page's text piled up"
            with pytest.raises(ConnectionClosed) as closed:  # now it reads what was on the way
                while True:
                    stalled.recv(timeout=10)
            assert closed.value.rcvd is None or closed.value.rcvd.code == 4408
        with page(product, person) as again:
            again.send(type="watch", conversation=conversation)
            again.until(lambda b: len(again.text.get(run, "")) == DELTAS * SIZE)
    assert [again.text[run]] == written


def test_a_page_that_reads_slowly_is_told_why(product: Product, person: Person, log: redis.Redis) -> None:
    address = f"{product.url.replace('http', 'ws')}/ws/"
    with page(product, person) as fast:
        conversation, run = start(log, fast)
        with connect(address, additional_headers=person.bearer, max_queue=1) as slow:
            Page(slow).send(type="watch", conversation=conversation)
            thread = threading.Thread(target=flood, args=(log, run))
            thread.start()
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    slow.recv(timeout=10)
                    if thread.is_alive():
                        threading.Event().wait(0.02)  # slower than it comes
            thread.join()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4408


def test_a_stalled_event_stream_is_ended(product: Product, person: Person, log: redis.Redis) -> None:
    with page(product, person) as fast:
        _, run = start(log, fast)
        headers = {**person.bearer, "Accept": "text/event-stream"}
        url = f"{product.url}/api/v1/runs/{run}/events"
        with httpx2.stream("GET", url, headers=headers, timeout=20) as response:
            before = memory_mb(product)
            pace = threading.Semaphore(AHEAD)
            writer = threading.Thread(target=flood, args=(log, run, pace), daemon=True)
            writer.start()
            read_all(fast, pace)
            writer.join()
            assert memory_mb(product) - before < 24
            received = sum(len(part) for part in response.iter_bytes())  # ends by itself, and not for want of a run
        assert 0 < received < DELTAS * SIZE


def test_a_long_history_does_not_cut_off_its_reader(product: Product, person: Person, log: redis.Redis) -> None:
    """What the database has is sent as fast as it is read: more than the queue may hold."""
    with page(product, person) as mine:
        conversation, run = start(log, mine)
        rows = [(run, n, "x" * 50_000, f"filler/{n}", datetime.now(UTC)) for n in range(1, 101)]
        for row in rows:
            product.execute(
                "INSERT INTO conversations_runevent (run_id, seq, channel, data, key, at)"
                " VALUES (%s, %s, 'step', jsonb_build_object('text', %s::text), %s, %s)",
                *row,
            )
        product.execute("UPDATE conversations_run SET next_seq = 101 WHERE id = %s", run)
        with page(product, person) as late:
            late.send(type="watch", conversation=conversation)
            late.until(lambda b: b.get("type") == "snapshot")
            assert late.seq[run] == 100
        eventually(lambda: mine.until(lambda b: b.get("seq") == 100), "the open page gets them too")
