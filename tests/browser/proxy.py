"""A proxy in front of the product that lets everything pass but WebSockets, as some companies' do."""

import contextlib
import socket
import threading
from collections.abc import Iterator

REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@contextlib.contextmanager
def without_websockets(port: int) -> Iterator[str]:
    """The proxy's address."""
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(server, port), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def _accept(server: socket.socket, port: int) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = server.accept()
            threading.Thread(target=_serve, args=(client, port), daemon=True).start()


def _serve(client: socket.socket, port: int) -> None:
    with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as product:
        answers = threading.Thread(target=_copy, args=(product, client), daemon=True)
        answers.start()
        _ask(client, product)
        _hang_up(product)
        answers.join()


def _ask(client: socket.socket, product: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(65_536):
            if b"upgrade: websocket" in data.lower():
                client.sendall(REFUSAL)
                return
            product.sendall(data)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    _hang_up(target)


def _hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
