"""How figures are written."""

import pytest

from conversations.presenters import duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.012, "12 ms"),
        (0.149, "0.1 s"),
        (0.19, "0.2 s"),
        (0.25, "0.3 s"),
        (59.96, "60.0 s"),
        (75.5, "76 s"),
        (240, "4 min"),
    ],
)
def test_times_are_rounded_as_the_browser_rounds_them(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
