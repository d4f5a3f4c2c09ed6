"""Generates the secrets of `docker-compose.yml`, once, into a folder for each service that reads them.

The folders are volumes mounted into those services alone, so that their files may be readable by the users that
the images of PostgreSQL and Valkey happen to run as.
"""

import base64
import os
import secrets
import sys
from pathlib import Path


def generate(root: Path) -> None:
    """Writes what is missing below `root` (`app`, `postgres`, `valkey`); existing secrets stay as they are."""
    postgres = _secret(root / "postgres" / "password", secrets.token_urlsafe(32), 0o444)
    password = _secret(root / "app" / "valkey_password", secrets.token_urlsafe(32), 0o400)
    settings = ["dir /data", "appendonly yes", 'save ""', "maxmemory-policy noeviction", f"requirepass {password}"]
    _secret(root / "valkey" / "valkey.conf", "\n".join(settings) + "\n", 0o444)
    _secret(root / "app" / "secret_key", secrets.token_urlsafe(48), 0o400)
    _secret(root / "app" / "encryption_keys", base64.urlsafe_b64encode(os.urandom(32)).decode(), 0o400)
    _secret(root / "app" / "database_url", f"postgresql://agentapp:{postgres}@postgres:5432/agentapp", 0o400)
    _secret(root / "app" / "redis_url", f"redis://:{password}@valkey:6379/0", 0o400)


def _secret(path: Path, fresh: str, mode: int) -> str:
    """The content of the file, written first when it is not there; never half-written."""
    if not path.exists():
        scratch = path.with_suffix(".new")
        scratch.unlink(missing_ok=True)
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(fresh)
            os.fchmod(file.fileno(), mode)
        scratch.rename(path)
    return path.read_text()


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
