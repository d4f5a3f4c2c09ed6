"""Questions for the demo agent, each with a judgement of its answer. None of them is among the agent's examples.

`TUNING` may be looked at while prompts are changed; `HELD_OUT` is only for the score.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

Judge = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Question:
    kind: str
    text: str
    is_right: Judge
    tool: str | None


def _number(value: float) -> Judge:
    """The answer names this number; digits may be grouped, and rounding to two places is fine."""

    def judge(answer: str) -> bool:
        plain = re.sub(r"(?<=\d)[,\u202f\u00a0](?=\d{3})", "", answer)
        return any(abs(float(found) - value) <= 0.0051 for found in re.findall(r"-?\d+(?:\.\d+)?", plain))

    return judge


def _words(*alternatives: str) -> Judge:
    """One of these stands in the answer, at the start of a word."""
    return lambda answer: any(re.search(rf"\b{re.escape(word)}", answer, re.I) for word in alternatives)


def _time_in(zone: str) -> Judge:
    """The answer shows the time there, at most three minutes old, on a 12 or 24 hour clock, and not as UTC."""

    def judge(answer: str) -> bool:
        if re.search(r"\d (UTC|GMT)\b", answer):
            return False
        now = datetime.now(UTC).astimezone(ZoneInfo(zone))
        recent = [now - timedelta(minutes=minutes) for minutes in range(4)]
        return any(f"{t:%H:%M}" in answer or re.search(rf"\b0?{t:%-I:%M}\s*{t:%p}", answer, re.I) for t in recent)

    return judge


def _today_in(zone: str) -> Judge:
    return lambda answer: f"{datetime.now(UTC).astimezone(ZoneInfo(zone)):%A}" in answer


def _sql(query: str) -> Judge:
    """The answer contains every value of the query's first row, computed now from the same data."""
    from tools_admin.connectors.builtin.demo_database import query_demo_database

    values = query_demo_database(query).splitlines()[1].split(" | ")
    judges = [_number(float(value)) if re.fullmatch(r"-?\d+(\.\d+)?", value) else _words(value) for value in values]
    return lambda answer: all(judge(answer) for judge in judges)


def _calculate(text: str, value: float) -> Question:
    return Question("arithmetic", text, _number(value), "calculator")


def _clock(text: str, judge: Judge) -> Question:
    return Question("time", text, judge, "current_time")


def _data(text: str, judge: Judge) -> Question:
    return Question("database", text, judge, "query_demo_database")


def _talk(text: str, judge: Judge) -> Question:
    return Question("small talk", text, judge, None)


TUNING = [
    _calculate("What is 347 * 29?", 347 * 29),
    _calculate("How much is 18% of 2450?", 441),
    _calculate("Divide 1001 by 7.", 143),
    _calculate("What's the square root of 1764?", 42),
    _calculate("I buy 6 books for 12.50 each and pay with a 100 note. How much change do I get?", 25),
    _calculate("2 to the power of 20?", 2**20),
    _clock("What time is it in Sydney?", _time_in("Australia/Sydney")),
    _clock("Current time in Chicago please", _time_in("America/Chicago")),
    _clock("how late is it in Madrid right now", _time_in("Europe/Madrid")),
    _clock("What day of the week is it in Lima?", _today_in("America/Lima")),
    _clock("Tell me the time in Nairobi.", _time_in("Africa/Nairobi")),
    _data("How many products are there?", _sql("SELECT count(*) FROM products")),
    _data("Which product has the lowest price?", _sql("SELECT name FROM products ORDER BY price LIMIT 1")),
    _data("How many customers are from Norway?", _sql("SELECT count(*) FROM customers WHERE country = 'Norway'")),
    _data("What is the price of the Gas Stove?", _number(49)),
    _data("What do my notes say about the trade fair?", _words("Stand 12", "hall B", "May")),
    _data("How many orders were cancelled?", _sql("SELECT count(*) FROM orders WHERE status = 'cancelled'")),
    _talk("Hi there!", _words("hello", "hey", "help")),
    _talk("Who are you?", _words("assistant", "agent")),
    _talk("That was helpful, thank you", _words("welcome", "glad", "pleasure", "happy", "help")),
]

HELD_OUT = [
    _calculate("What is 86 times 137?", 86 * 137),
    _calculate("Please add 1999, 2001 and 487.", 1999 + 2001 + 487),
    _calculate("What is 35% of 640?", 224),
    _calculate("A ticket costs 23.75. What do 8 tickets cost?", 190),
    _calculate("What is (144 - 19) / 5?", 25),
    _calculate("Calculate the square root of 5929", 77),
    _clock("What time is it in Tokyo?", _time_in("Asia/Tokyo")),
    _clock("What's the time in San Francisco?", _time_in("America/Los_Angeles")),
    _clock("Which weekday is it today in Cairo?", _today_in("Africa/Cairo")),
    _clock("time in Munich?", _time_in("Europe/Berlin")),
    _clock("Can you tell me how late it is in Mumbai now?", _time_in("Asia/Kolkata")),
    _data("How many customers do we have?", _sql("SELECT count(*) FROM customers")),
    _data("What is the most expensive product?", _sql("SELECT name FROM products ORDER BY price DESC LIMIT 1")),
    _data("How many orders are still open?", _sql("SELECT count(*) FROM orders WHERE status = 'open'")),
    _data("How many customers live in Hamburg?", _sql("SELECT count(*) FROM customers WHERE city = 'Hamburg'")),
    _data("How many Trail Mats are in stock?", _sql("SELECT stock FROM products WHERE name = 'Trail Mat'")),
    _data("Who has the spare key of the warehouse, according to my notes?", _words("Jonas")),
    _talk("Hello, how are you?", _words("hello", "well", "fine", "good", "great", "help")),
    _talk("Thanks a lot!", _words("welcome", "glad", "pleasure", "happy", "help")),
    _talk("What can you do for me?", _words("calculat", "arithmetic", "time", "database", "data")),
]
