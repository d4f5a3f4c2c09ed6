"""A receiver of webhooks on loopback: keeps what it got, and answers as it is told."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


def status(code: int, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "5")
        handler.end_headers()
        handler.wfile.write(b"hello")

    return answer


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100_000):
        handler.wfile.write(b"x" * 10_000)


def never(handler: BaseHTTPRequestHandler) -> None:
    handler.server.released.wait(60)  # type: ignore[attr-defined]


class Receiver:
    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answer: Answer = status(204)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                try:
                    receiver.answer(self)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.released = threading.Event()  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.released.set()  # type: ignore[attr-defined]
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As the receiver's own code would check it."""
    stamp = headers["webhook-timestamp"]
    assert abs(time.time() - int(stamp)) < 300
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join([headers["webhook-id"].encode(), stamp.encode(), body])
    right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(headers["webhook-signature"], f"v1,{right}")
