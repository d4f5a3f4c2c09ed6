"""Asks the demo agent 20 questions through the engine and counts right answers.

    python benchmarks/demo_model.py                     # its own server, with the weights of var/ (or fetched)
    python benchmarks/demo_model.py --model model.gguf  # its own server, with these weights
    python benchmarks/demo_model.py --url http://127.0.0.1:8081/v1 --key KEY

The held-out questions are the score; `--tuning` asks those that the prompts were tuned on.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket
import statistics
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from openai import AsyncOpenAI  # noqa: E402

from agentapp.engine import Event, ModelError  # noqa: E402
from benchmarks.demo_questions import HELD_OUT, TUNING, Question  # noqa: E402
from tools_admin.demo.standalone import demo_agent, warm_up  # noqa: E402

GOAL = 15


@dataclass
class Outcome:
    question: Question
    answer: str
    tool: str
    seconds: float
    first_text: float

    @property
    def is_right(self) -> bool:
        return self.question.is_right(self.answer)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an OpenAI-compatible endpoint that is running already")
    parser.add_argument("--key", default="none")
    parser.add_argument("--model", type=Path, help="a GGUF file to serve")
    parser.add_argument("--tuning", action="store_true", help="ask the questions that the prompts were tuned on")
    options = parser.parse_args()
    url, key, server = (options.url, options.key, None) if options.url else start_server(options.model)
    outcomes = asyncio.run(ask_all(url, key, TUNING if options.tuning else HELD_OUT))
    report(outcomes)
    del server
    return 0 if sum(outcome.is_right for outcome in outcomes) >= GOAL else 1


def start_server(weights: Path | None) -> tuple[str, str, Any]:
    from agentapp.embedded import demo_model
    from agentapp.embedded.environment import ensure

    if weights is None:
        weights = demo_model.weights(ensure(ROOT / "var"), os.environ.get("DEMO_MODEL", ""))
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    key = secrets.token_hex()
    return url, key, demo_model.serve(weights, url, key)


async def ask_all(url: str, key: str, questions: list[Question]) -> list[Outcome]:
    async with AsyncOpenAI(base_url=url, api_key=key, max_retries=0) as client:
        begun = time.perf_counter()
        await warm_up(url, key)
        print(
            f"The first answer, which reads the fixed part of the prompt, took {time.perf_counter() - begun:.1f} s.\n"
        )
        return [await ask(client, question) for question in questions]


async def ask(client: AsyncOpenAI, question: Question) -> Outcome:
    begun = time.perf_counter()
    first_text: list[float] = []

    def emit(event: Event) -> None:
        if event.channel == "answer" and not first_text:
            first_text.append(time.perf_counter() - begun)

    try:
        result = await demo_agent(client, emit=emit).run(question.text)
    except ModelError as error:
        return Outcome(question, f"{type(error).__name__}: {error}", "", time.perf_counter() - begun, 0.0)
    seconds = time.perf_counter() - begun
    tools = ", ".join(step.tool_name or "" for step in result.tool_steps)
    return Outcome(question, result.answer, tools, seconds, first_text[0] if first_text else seconds)


def report(outcomes: list[Outcome]) -> None:
    print(f"{'':5}  {'text':>5}  {'done':>5}  {'tool':<20}  question → answer")
    for outcome in outcomes:
        mark = "right" if outcome.is_right else "WRONG"
        talk = f"{outcome.question.text} → {' '.join(outcome.answer.split())[:110]}"
        print(f"{mark}  {outcome.first_text:5.1f}  {outcome.seconds:5.1f}  {outcome.tool or '–':<20}  {talk}")
    print()
    for kind in dict.fromkeys(outcome.question.kind for outcome in outcomes):
        of_kind = [outcome for outcome in outcomes if outcome.question.kind == kind]
        print(f"{kind:<12} {sum(outcome.is_right for outcome in of_kind)}/{len(of_kind)}")
    right = sum(outcome.is_right for outcome in outcomes)
    first = statistics.median(outcome.first_text for outcome in outcomes)
    done = statistics.median(outcome.seconds for outcome in outcomes)
    print(
        f"\n{right} of {len(outcomes)} right (aim: {GOAL}); median {first:.1f} s to first text, {done:.1f} s to the end"
    )


if __name__ == "__main__":
    sys.exit(main())
