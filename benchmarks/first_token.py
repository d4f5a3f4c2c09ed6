"""Time from sending a message to the first answer token in the page's socket, through the whole product.

The model endpoint is a local fake that answers without delay. Prints the median of the runs, and where the time
goes. Usage: python -m benchmarks.first_token [RUNS]
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from websockets.sync.client import ClientConnection, connect

from agentapp.embedded.testing import services
from tests.fake_model import FakeModel
from tests.product import Product

AIM_MS = 60


def main(runs: int) -> int:
    with tempfile.TemporaryDirectory() as folder, services() as environment:
        model = FakeModel().start()
        product = Product(environment, Path(folder), model)
        try:
            product.start()
            person = product.person()
            with connect(f"{product.url.replace('http', 'ws')}/ws/", additional_headers=person.bearer) as socket:
                times = [_measure(socket, number) for number in range(runs + 3)][3:]
        finally:
            product.stop()
            model.end()
    for name in ("ack", "running", "first token", "done"):
        values = sorted(t[name] for t in times)
        print(f"{name:12} median {statistics.median(values):6.1f} ms   min {values[0]:6.1f}   max {values[-1]:6.1f}")
    median = statistics.median(t["first token"] for t in times)
    print(f"first answer token: median {median:.1f} ms over {runs} runs (aim: {AIM_MS} ms)")
    return 0 if median <= AIM_MS else 1


def _measure(socket: ClientConnection, number: int) -> dict[str, float]:
    began = time.perf_counter()
    socket.send(json.dumps({"type": "send", "client_id": f"{began}-{number}", "content": "Good morning"}))
    seen: dict[str, float] = {}
    run = ""
    while "done" not in seen:
        body = json.loads(socket.recv(timeout=20))
        now = (time.perf_counter() - began) * 1000
        if body.get("type") == "ack":
            seen["ack"], run = now, body["run"]
        if not run or body.get("run") != run:
            continue
        data = body.get("data") or {}
        if body.get("channel") == "run":
            seen.setdefault("running", now)
        if data.get("status") == "delta" or (body.get("type") == "snapshot" and body["answer"]["text"]):
            seen.setdefault("first token", now)
        if body.get("channel") == "done":
            seen["done"] = now
            seen.setdefault("running", now)
    return seen


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
