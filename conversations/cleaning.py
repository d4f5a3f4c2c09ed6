"""The one point where text that enters the database loses what PostgreSQL and JSON cannot hold."""

import re
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(value: Any) -> Any:
    """Removes NUL characters and lone surrogates from text, at any depth of lists and dicts."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("", value) if _UNSTORABLE.search(value) else value
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value
