"""Bar charts as plain SVG: one bar a day, what went wrong on top of it. The table beside them says the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.formats import date_format

from conversations.statistics import Figures

WIDTH, HEIGHT, GAP = 600, 120, 0.25  # units of the drawing; share of a bar's place that stays free


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    width: float
    y: float
    height: float
    bad_height: float
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    bars: list[Bar]
    top: str
    first: Any
    last: Any
    width: int = WIDTH
    height: int = HEIGHT


def bar_chart(
    title: str,
    days: Sequence[Figures],
    value: Callable[[Figures], int],
    show: Callable[[int], str],
    bad: Callable[[Figures], int] = lambda _: 0,
) -> Chart:
    """`show` writes a value for people; `bad` is the part of it that is drawn as trouble."""
    highest = max((value(day) for day in days), default=0)
    place = WIDTH / max(len(days), 1)

    def bar(number: int, day: Figures) -> Bar:
        height = value(day) / highest * HEIGHT if highest else 0.0
        trouble = bad(day) / highest * HEIGHT if highest else 0.0
        return Bar(
            x=round(number * place + place * GAP / 2, 1),
            width=round(place * (1 - GAP), 1),
            y=round(HEIGHT - height, 1),
            height=round(height, 1),
            bad_height=round(trouble, 1),
            title=f"{date_format(day.name, 'SHORT_DATE_FORMAT')}: {show(value(day))}",
        )

    bars = [bar(number, day) for number, day in enumerate(days)]
    return Chart(title, bars, show(highest), days[0].name, days[-1].name)
