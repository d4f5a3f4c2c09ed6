"""Which request a line of the log belongs to."""

import logging
from contextvars import ContextVar

current_request: ContextVar[str] = ContextVar("current_request", default="-")


class RequestIdFilter(logging.Filter):
    """Gives each record its `request_id`; `-` outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_request.get()
        return True
