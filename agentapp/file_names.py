"""What the file of a stranger is called."""

import re

MAX_NAME = 200  # characters
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain_name(name: str) -> str:
    """A name without a path or signs that change how it reads or cannot be stored; empty if nothing is left."""
    plain = _NOT_IN_NAMES.sub("", name).replace("\\", "/").rpartition("/")[2].strip(" .")
    if len(plain) <= MAX_NAME:
        return plain
    stem, dot, ending = plain.rpartition(".")
    return f"{stem[: MAX_NAME - len(ending) - 1]}.{ending}" if dot and len(ending) <= 20 else plain[:MAX_NAME]
