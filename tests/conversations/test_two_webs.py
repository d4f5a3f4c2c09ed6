"""Any web process serves anything: pages that come back to another one, a stop at one and its page at the other."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import httpx2
import pytest

from tests.conversations.test_socket import page, send
from tests.conversations.test_sse import events, numbers, start, text
from tests.product import WORKER, Person, Product


@pytest.fixture
def urls(product: Product) -> Iterator[list[str]]:
    yield [product.url, product.add_web("web2")]
    product.end("web2")


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


def test_a_page_that_reloads_at_each_process_in_turn_misses_nothing(
    product: Product, person: Person, urls: list[str]
) -> None:
    product.model.token_delay = 0.005
    with page(product, person, urls[0]) as steady:
        ack = send(steady, "Tell a long story")
        run = ack["run"]
        reloads = 0
        while True:
            with page(product, person, urls[(reloads + 1) % 2]) as fresh:
                fresh.send(type="watch", conversation=ack["conversation"], after={run: 0})
                target = 200 * reloads
                fresh.until(lambda b, f=fresh, t=target: len(f.text.get(run, "")) > t or b.get("channel") == "done")  # type: ignore[misc]
                reloads += 1
                if any(event["channel"] == "done" for event in fresh.events):
                    break
        done = steady.ended(run)
    assert reloads > 4
    assert fresh.events == steady.events
    assert steady.text[run] == done["data"]["answer"]


def test_stop_at_one_process_ends_the_page_at_the_other(product: Product, person: Person, urls: list[str]) -> None:
    product.model.token_delay = 0.05
    with page(product, person, urls[0]) as mine, page(product, person, urls[1]) as elsewhere:
        ack = send(mine, "Tell a long story")
        elsewhere.send(type="watch", conversation=ack["conversation"])
        elsewhere.until(lambda b: elsewhere.text.get(ack["run"], "") != "")
        answer = httpx2.post(f"{urls[1]}/api/v1/runs/{ack['run']}/cancel", headers=person.bearer)
        assert answer.status_code == 200
        ends = [mine.ended(ack["run"])["data"], elsewhere.ended(ack["run"])["data"]]
    assert [end["status"] for end in ends] == ["cancelled", "cancelled"]
    assert mine.text == elsewhere.text


def test_lists_at_both_processes_stay_in_step(product: Product, person: Person, urls: list[str]) -> None:
    with page(product, person, urls[0]) as mine, page(product, person, urls[1]) as elsewhere:
        ack = send(mine, "Hello")
        mine.ended(ack["run"])
        seen = elsewhere.until(lambda b: b.get("channel") == "run" and b["data"]["status"] == "completed")
    assert seen["data"]["conversation"] == ack["conversation"]


def test_of_many_conversations_at_two_webs_and_two_workers_none_hangs(
    product: Product, person: Person, urls: list[str]
) -> None:  # C-55
    """Each is begun at one, and read in turn at both, a few events at a time."""
    product.spawn("worker2", WORKER)
    product.model.token_delay = 0.002
    product.model.brain = lambda _: {"text": " ".join(f"word{n}" for n in range(60))}

    def ask_and_read(number: int) -> tuple[str, list[int], bool]:
        run, seen, visits = start(product, person, f"Question {number}", urls[number % 2]), [], 0
        while not (seen and seen[-1]["channel"] == "done"):
            visits += 1
            last = max(numbers(seen), default=0)
            with events(product, person, run, after=last, url=urls[(number + visits) % 2]) as stream:
                seen += islice(stream, 3)
        answer: str = seen[-1]["data"]["answer"]
        assert answer.startswith(text(seen))
        return answer, numbers(seen), visits > 1

    try:
        with ThreadPoolExecutor(20) as people:
            read = list(people.map(ask_and_read, range(100)))
    finally:
        product.end("worker2")
    whole = " ".join(f"word{n}" for n in range(60))
    assert {said for said, _, _ in read} == {whole}
    assert all(seqs == list(range(1, len(seqs) + 1)) for _, seqs, _ in read)
    assert all(again for _, _, again in read), "each was read at both"
