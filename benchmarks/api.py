"""What calls of the REST API cost beside an empty address of the same server, measured turn by turn in the same run.

Shares are of throughput: requests a second of one client that sends them one after the other over a kept connection,
each the best of many short rounds, as whatever else the machine does only takes away. The empty address is `/healthz`:
it passes all middleware as every request does, and its view answers at once; it knows no caller, counts no request
and asks neither PostgreSQL nor Valkey, as the others do.
Usage: python -m benchmarks.api [ROUNDS] [REQUESTS]
"""

import sys
import tempfile
import time
from pathlib import Path

import httpx2

from agentapp.embedded.testing import services
from tests.fake_model import FakeModel
from tests.product import Product

AIMS = {"GET /api/v1/me": 0.50, "a page of 50 messages": 0.35}
MAKE_MESSAGES = """
from accounts.models import User
from tests.factories import make_conversation, make_message
talk = make_conversation(User.objects.get(pk={user}))
for number in range(60):
    make_message(talk, f"Message {{number}}. " + "word " * 40)
print(talk.id)
"""


def main(rounds: int, requests: int) -> int:
    with tempfile.TemporaryDirectory() as folder, services() as environment:
        model = FakeModel().start()
        product = Product(environment, Path(folder), model)
        product.environment["RATE_REQUESTS"] = "1000000/minute"  # counted, as in production
        try:
            product.start()
            person = product.person()
            talk = product.manage("shell", "--no-imports", "-c", MAKE_MESSAGES.format(user=person.id)).split()[-1]
            addresses = {
                "empty": "/healthz",
                "GET /api/v1/me": "/api/v1/me",
                "a page of 50 messages": f"/api/v1/conversations/{talk}/messages?limit=50",
            }
            with httpx2.Client(base_url=product.url, headers=person.bearer, timeout=60) as client:
                rates = _rates(client, addresses, rounds, requests)
        finally:
            product.stop()
            model.end()
    missed = 0
    for name, aim in AIMS.items():
        share = rates[name] / rates["empty"]
        missed += share < aim
        print(f"{name}: {rates[name]:.0f} of {rates['empty']:.0f} requests a second, {share:.0%} (aim: {aim:.0%})")
    return 1 if missed else 0


def _rates(client: httpx2.Client, addresses: dict[str, str], rounds: int, requests: int) -> dict[str, float]:
    """Requests a second of each."""
    seconds: dict[str, list[float]] = {name: [] for name in addresses}
    for number in range(rounds + 1):
        for name, address in addresses.items():
            began = time.perf_counter()
            for _ in range(requests):
                client.get(address).raise_for_status()
            if number:
                seconds[name].append(time.perf_counter() - began)
    return {name: requests / min(values) for name, values in seconds.items()}


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or (40, 50))))
