"""What `/v1/chat/completions` adds to a model's own stream: time to the first token, and CPU per token.

The model endpoint is a local fake. The added time is the median through the product less the median of asking the fake
directly. CPU is what web and worker together took for long replies less what they took for as many short ones, over the
tokens between; streams run side by side at a model's usual pace. What both take when nobody asks anything is measured
before, told apart, and not counted: it is no token's.
Usage: python -m benchmarks.openai_api [RUNS] [STREAMS] [TOKENS]
"""

import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2

from agentapp.embedded.testing import services
from tests.fake_model import FakeModel
from tests.product import AS_SHIPPED, Product

AIM_MS, AIM_US = 15, 20
TICKS = os.sysconf("SC_CLK_TCK")
PACE = 0.01  # seconds between tokens
IDLE_SECONDS = 15


def main(runs: int, streams: int, tokens: int) -> int:
    with tempfile.TemporaryDirectory() as folder, services() as environment:
        model = FakeModel().start()
        product = Product(environment, Path(folder), model)
        product.environment |= {"MAX_RUNNING_RUNS": "0", **AS_SHIPPED}
        product.brain = lambda request: {"text": "word " * int(request["messages"][-1]["content"])}
        try:
            product.start()
            person = product.person()
            with httpx2.Client(headers=person.bearer, timeout=300) as client:
                added = _added(client, product, runs)
                cost = _cpu(client, product, streams, tokens)
        finally:
            product.stop()
            model.end()
    return 0 if added <= AIM_MS and cost <= AIM_US else 1


def _added(client: httpx2.Client, product: Product, runs: int) -> float:
    times: dict[str, list[float]] = {"model": [], "product": []}
    for number in range(runs + 5):
        for name, url in (("model", product.model.url), ("product", f"{product.url}/v1")):
            first = _ask(client, url, 5)
            if number >= 5:
                times[name].append(first * 1000)
    for name, values in times.items():
        print(f"first token, {name:8} median {statistics.median(values):6.1f} ms   min {min(values):6.1f}")
    added = statistics.median(times["product"]) - statistics.median(times["model"])
    print(f"added to the first token: {added:.1f} ms over {runs} runs (aim: {AIM_MS} ms)")
    return added


def _cpu(client: httpx2.Client, product: Product, streams: int, tokens: int) -> float:
    product.model.token_delay = PACE
    idle = _idle(product)
    took, seconds = {}, {}
    for count in (1, tokens):
        before, began = _spent(product), time.monotonic()
        with ThreadPoolExecutor(streams) as pool:
            list(pool.map(lambda _, count=count: _ask(client, f"{product.url}/v1", count), range(streams)))  # type: ignore[misc]
        took[count] = {name: spent - before[name] for name, spent in _spent(product).items()}
        seconds[count] = time.monotonic() - began
    between, longer = streams * (tokens - 1), seconds[tokens] - seconds[1]
    parts = {name: (took[tokens][name] - took[1][name] - idle[name] * longer) / between * 1e6 for name in idle}
    cost, beside = sum(parts.values()), sum(idle.values()) * longer / between * 1e6
    shown = ", ".join(f"{name} {part:.1f}" for name, part in parts.items())
    print(f"CPU per token: {cost:.1f} µs ({shown}) over {streams} streams of {tokens} tokens (aim: {AIM_US} µs)")
    print(f"the same time of idle processes would be {beside:.1f} µs a token more")
    return cost


def _idle(product: Product) -> dict[str, float]:
    """CPU seconds a second of each process while nobody asks anything."""
    before = _spent(product)
    time.sleep(IDLE_SECONDS)
    return {name: (spent - before[name]) / IDLE_SECONDS for name, spent in _spent(product).items()}


def _ask(client: httpx2.Client, base: str, tokens: int) -> float:
    """Seconds to the first text of a streamed reply, which is read to its end."""
    body: dict[str, Any] = {"model": "route-general", "stream": True}
    body["messages"] = [{"role": "user", "content": str(tokens)}]
    began, first = time.perf_counter(), 0.0
    seen = []
    with client.stream("POST", f"{base}/chat/completions", json=body) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            seen.append(line)
            if not first and '"content": "word' in line.replace('":"', '": "'):
                first = time.perf_counter() - began
    assert first, f"no text came: {seen}"
    return first


def _spent(product: Product) -> dict[str, float]:
    """CPU seconds of each process."""
    spent = {}
    for name, process in product.processes.items():
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        spent[name] = (int(fields[11]) + int(fields[12])) / TICKS
    return spent


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(given + [30, 10, 1_000][len(given) :])))
