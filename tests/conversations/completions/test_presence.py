"""A program's run ends with whoever would have given it the reply."""

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from openai import OpenAI, OpenAIError

from tests.conversations.test_main_job import call
from tests.product import WEB, Person, Product, eventually, free_port

RUN = (
    "SELECT run.status, asked.awaited_until > now(), asked.awaited_until FROM conversations_run run"
    " JOIN conversations_asked asked ON asked.run_id = run.id WHERE run.user_id = %s"
)


@pytest.fixture
def mortal(product: Product) -> Iterator[str]:
    """Another web process with short leases."""
    port = free_port()
    product.spawn("mortal", [*WEB, "-p", str(port)], RUN_LEASE_SECONDS="1", RUN_HEARTBEAT_SECONDS="0.3")
    url = f"http://127.0.0.1:{port}"
    eventually(lambda: product.is_ready(url), "it is ready")
    yield url
    if "mortal" in product.processes:
        product.end("mortal")


def test_a_run_is_stopped_when_its_web_process_dies_and_not_before(
    product: Product, person: Person, mortal: str
) -> None:
    product.model.token_delay, hung_up = 0.1, product.model.hangups

    def ask() -> None:
        messages = [{"role": "user", "content": "Tell a long story"}]
        with suppress(OpenAIError), OpenAI(base_url=f"{mortal}/v1", api_key=person.key, max_retries=0) as client:
            client.chat.completions.create(model="route-general", messages=messages)  # type: ignore[arg-type]

    asking = threading.Thread(target=ask)
    asking.start()
    terms = set()

    def renewed() -> bool:
        terms.update(until for _, _, until in product.sql(RUN, person.id))
        return len(terms) > 4  # longer than a term, without being stopped

    eventually(renewed, "its process says that somebody waits")
    assert [row[:2] for row in product.sql(RUN, person.id)] == [("running", True)]
    product.end("mortal")
    eventually(lambda: [row[0] for row in product.sql(RUN, person.id)] == ["cancelled"], "the run is stopped")
    eventually(lambda: product.model.hangups > hung_up, "the provider sees the hang-up")
    asking.join(30)


def test_runs_that_a_page_asks_for_again_wait_for_nobody(product: Product, person: Person) -> None:
    with OpenAI(base_url=f"{product.url}/v1", api_key=person.key, max_retries=0) as client:
        client.chat.completions.create(model="route-general", messages=[{"role": "user", "content": "Hi"}])
    [(message,)] = product.sql("SELECT message_id FROM conversations_run WHERE user_id = %s", person.id)
    assert call(product, person, "POST", f"/api/v1/messages/{message}/regenerate")[0] == 202
    assert sorted(row[1] is None for row in product.sql(RUN, person.id)) == [False, True]
