"""JSON of clients: never nested so deeply that what walks or writes it later breaks."""

from typing import Any

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.parser import Parser

MOST_LEVELS = 100


def check_nesting(value: Any) -> None:
    """Raises ValueError."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        level = [item for outer in level if isinstance(outer, dict | list) for item in _inner(outer)]
        if not level:
            return
    raise ValueError(f"The JSON is nested too deeply: {MOST_LEVELS} levels are possible.")


def _inner(outer: dict[str, Any] | list[Any]) -> Any:
    return outer.values() if isinstance(outer, dict) else outer


class BodyParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        body = super().parse_body(request)
        try:
            check_nesting(body)
        except ValueError as error:
            raise HttpError(400, str(error)) from None
        return body
