"""Text that PostgreSQL and JSON cannot hold never reaches them."""

import pytest

from conversations.cleaning import canonical_json, clean, to_json
from tests.factories import make_conversation, make_message, make_user


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        ("a\x00b", "ab"),
        ("half \ud83d emoji", "half  emoji"),
        ("whole 😀 emoji", "whole 😀 emoji"),
        ({"k\x00": ["\udc00", ("x\x00",), 1, None]}, {"k": ["", ["x"], 1, None]}),
    ],
)
def test_what_cannot_be_stored_is_removed_at_any_depth(dirty: object, cleaned: object) -> None:
    assert clean(dirty) == cleaned


def test_cleaned_text_can_be_stored_and_read(db: None) -> None:
    message = make_message(make_conversation(make_user()), clean("a\x00b \ud800 😀"))
    message.refresh_from_db()
    assert message.content == "ab  😀"


def test_integers_of_any_size_become_json() -> None:
    assert to_json({"n": 2**70}) == b'{"n":1180591620717411303424}'
    assert canonical_json({"b": 2**70, "a": 1}) == b'{"a":1,"b":1180591620717411303424}'
    assert canonical_json({"b": 1, "a": "ä"}) == '{"a":"ä","b":1}'.encode()
