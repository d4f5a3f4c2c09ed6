"""Tables as text: some rows a section, each under the table's header."""

import csv
import io
from collections.abc import Iterator

from tools_admin.documents.readers.sections import Found, decoded, packed

CHARS = 1_200
DELIMITERS = ",;\t|"

csv.field_size_limit(1_000_000)


def read(data: bytes, max_chars: int, delimiter: str = "") -> bytes:
    text = decoded(data)
    return packed(_sections(text, delimiter or _delimiter(text)), max_chars)


def _sections(text: str, delimiter: str) -> Iterator[Found]:
    rows = (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(map(str.strip, row)))
    header = _line(next(rows, []))
    lines: list[str] = []
    first = size = 0
    for number, row in enumerate(rows, start=1):
        line = _line(row)
        if lines and size + len(line) > CHARS:
            yield "\n".join([header, *lines]), {"row": first}
            lines, size = [], 0
        if not lines:
            first = number
        lines.append(line)
        size += len(line)
    if lines:
        yield "\n".join([header, *lines]), {"row": first}
    elif not first and header:
        yield header, {}


def _delimiter(text: str) -> str:
    """The sign that divides the header; files of German spreadsheets have semicolons."""
    header = text.partition("\n")[0]
    return max(DELIMITERS, key=header.count)


def _line(row: list[str]) -> str:
    return " | ".join(" ".join(cell.split()) for cell in row)
