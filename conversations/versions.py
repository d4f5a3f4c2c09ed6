"""Two writers of one thing: who names the version that was read overwrites no later one."""

import hashlib

from conversations.errors import ChangedMeanwhile


def etag_of(*values: object) -> str:
    """Of what two people can change at once."""
    return f'"{hashlib.sha256(repr(values).encode()).hexdigest()[:20]}"'


def check_version(if_match: str | None, etag: str) -> None:
    """Raises ChangedMeanwhile. Proxies that compress answers make `ETag`s weak ones, which count as well."""
    named = [part.strip().removeprefix("W/") for part in (if_match or "*").split(",")]
    if not {"*", etag}.intersection(named):
        raise ChangedMeanwhile
