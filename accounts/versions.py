"""`ETag` and `If-Match` as calls take and give them."""

from typing import Annotated

from ninja import Header

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="The `ETag` that was read: 412 `changed_meanwhile` if somebody else was faster. Without it, or "
        "with `*`, nobody is asked.",
        examples=["*"],
    ),
]
_ETAG = {"description": "The version, for `If-Match`.", "schema": {"type": "string"}}
WITH_ETAG = {"responses": {200: {"headers": {"ETag": _ETAG}}}}
