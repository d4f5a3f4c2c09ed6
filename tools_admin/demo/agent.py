"""The demo agent: what a small local model needs to be shown so that it uses its tools well.

A model of half a billion parameters learns from worked exchanges, not from rules. Each reply of the examples has the
form that the engine asks of a small model: a JSON object until a tool was used, plain text after its observation.
"""

from __future__ import annotations

import json
from typing import Any

Exchange = list[dict[str, str]]

INSTRUCTIONS = "You are the demo agent of a small outdoor shop. Keep answers to one or two sentences."


def _direct(question: str, answer: str, why: str = "Small talk") -> Exchange:
    reply = {"type": "final_answer", "reasoning": f"{why}: no tool.", "answer": answer}
    return [_user(question), _assistant(json.dumps(reply))]


def _calculated(question: str, expression: str, value: str, answer: str) -> Exchange:
    observation = f"{expression} = {value}"
    return _with_tool(
        question, "Arithmetic: use calculator.", "calculator", {"expression": expression}, observation, answer
    )


def _clocked(question: str, place: str, observation: str, answer: str) -> Exchange:
    return _with_tool(
        question, "Time in a place: use current_time.", "current_time", {"place": place}, observation, answer
    )


def _queried(question: str, why: str, sql: str, observation: str, answer: str) -> Exchange:
    reasoning = f"{why}: use query_demo_database."
    return _with_tool(question, reasoning, "query_demo_database", {"sql": sql}, observation, answer)


def _with_tool(
    question: str, reasoning: str, tool: str, arguments: dict[str, str], observation: str, answer: str
) -> Exchange:
    call = {"type": "tool_call", "reasoning": reasoning, "tool_name": tool, "tool_args": arguments}
    return [
        _user(question),
        _assistant(json.dumps(call)),
        _user(f"Observation: {observation}"),
        _assistant(answer),
    ]


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


EXAMPLES: list[Exchange] = [
    _direct("Hello!", "Hello! I can calculate, tell the time anywhere and look into the demo shop's data."),
    _clocked(
        "What time is it in Oslo?",
        "Oslo",
        "Oslo: Wednesday, 4 March 2026, 14:25 (UTC+01:00, Europe/Oslo)",
        "In Oslo it is 14:25 on Wednesday, 4 March 2026.",
    ),
    _queried(
        "How many tents do we sell?",
        "Shop data",
        "SELECT count(*) FROM products WHERE category = 'tents'",
        "count(*)\n3",
        "There are 3 tents.",
    ),
    _direct("Thank you!", "You are welcome!"),
    _calculated("What is 12% of 350?", "350 * 12 / 100", "42", "12% of 350 is 42."),
    _queried(
        "Which product has sold least?",
        "Shop data",
        "SELECT product, sum(quantity) AS sold FROM sales GROUP BY product ORDER BY sold ASC LIMIT 1",
        "product | sold\nHead Torch | 35",
        "The Head Torch has sold least: 35 pieces.",
    ),
    _direct("What is the capital of Italy?", "The capital of Italy is Rome.", "General knowledge"),
    _calculated(
        "I buy 3 tents for 24.90 each and pay with a 200 note. What is left?",
        "200 - 3 * 24.90",
        "125.3",
        "125.30 is left.",
    ),
    _clocked(
        "What is today's date?",
        "UTC",
        "UTC: Saturday, 7 March 2026, 11:32 (UTC+00:00, UTC)",
        "Today is Saturday, 7 March 2026.",
    ),
    _queried(
        "What is our revenue in Portugal?",
        "Shop data",
        "SELECT sum(amount) AS revenue FROM sales WHERE country = 'Portugal'",
        "revenue\n41779.6",
        "Our revenue in Portugal is 41,779.60.",
    ),
    _queried(
        "How many orders were paid by card?",
        "Shop data",
        "SELECT count(*) FROM orders WHERE payment = 'card'",
        "Error: no such column: payment. orders(order_id, customer, ordered_on, status)",
        "I could not find that: the data says nothing about the payment.",
    ),
    _direct("Who made you?", "I am the demo agent of this workspace, run by a small language model on this machine."),
    _calculated("What is the square root of 50?", "sqrt(50)", "7.07106781187", "The square root of 50 is about 7.07."),
    _clocked(
        "Which day is it today in Toronto?",
        "Toronto",
        "Toronto: Friday, 6 March 2026, 09:10 (UTC-05:00, America/Toronto)",
        "In Toronto it is 09:10 on Friday, 6 March 2026.",
    ),
    _queried(
        "Which tents do we have?",
        "Shop data",
        "SELECT name, price FROM products WHERE category = 'tents'",
        "name | price\nRidge Tent 2P | 249\nFamily Tent 4P | 429\nStorm Tarp | 79",
        "We have the Ridge Tent 2P for 249, the Family Tent 4P for 429 and the Storm Tarp for 79.",
    ),
    _queried(
        "What do my notes say about returns?",
        "Notes",
        "SELECT title, text FROM notes WHERE title LIKE '%return%' OR text LIKE '%return%'",
        "title | text\nReturn policy | Customers may return unused goods within 45 days.",
        "Your note “Return policy” says: Customers may return unused goods within 45 days.",
    ),
    _direct("Say something nice about autumn", "Autumn paints the forest in gold and red.", "General knowledge"),
    _calculated("3 to the power of 7?", "3 ** 7", "2187", "3 to the power of 7 is 2187."),
]

# What the demo model can do and how it is asked, as values of a `LanguageModel` row. Temperature 0 and short replies
# are what it was tuned with.
MODEL: dict[str, Any] = {
    "tool_call": False,
    "json_mode": True,
    "json_schema": True,
    "streaming": True,
    "vision": False,
    "small": True,
    "context_size": 8_192,
    "max_output_tokens": 200,
    "extra_body": {"temperature": 0, "cache_prompt": True, "max_tokens": 200},
}

PRESET: dict[str, Any] = {
    "name": "Demo agent",
    "description": "Calculates, tells the time anywhere and looks into the data of a fictitious outdoor shop.",
    "instructions": INSTRUCTIONS,
    "examples": EXAMPLES,
    "starters": [
        "What is 17.5% of 1,240?",
        "What time is it in Lisbon?",
        "Which product has sold best?",
        "What do my notes say about the summer party?",
    ],
}
