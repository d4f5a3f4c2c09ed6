"""How many times the tokens of ReWOO does ReAct take for the same work, by the number of calls?

    python -m benchmarks.token_factor

The starter set's tasks of calls that do not depend on each other, played by the scripted model with the real tools.
What is measured is how often the loops send what they have, nothing else: see the words that are printed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from statistics import mean

from agentapp.engine import Agent, MemoryJournal, ReActAgent, ReWOOAgent
from agentapp.engine.comparison import FaultyTools, ScriptedWorker, Task, attempt, read_yaml
from tools_admin.connectors.builtin import builtin_tools
from tools_admin.demo import TASKS

# Xu et al. 2023, gpt-3.5-turbo: tokens of ReAct, of ReWOO, steps of each.
PUBLISHED = {
    "HotpotQA": (9_795, 1_986, 4.97, 4.45),
    "TriviaQA": (4_213, 1_341, 5.21, 3.55),
    "GSM8K": (1_874, 1_089, 2.86, 3.21),
    "StrategyQA": (1_686, 1_287, 2.58, 3.20),
}
WORDS = """
Ours are estimates of tokens (a quarter of a token a character), without any prompt cache, with short results and the
three small tools of the demo agent. The scripted model makes one call a turn; a model that makes several at once
narrows the gap. ReAct's figures hold the call that checks a finished answer (from three turns on) and the one that
words it. The published runs had examples in their prompts, longer results and another model: compare the order of
magnitude and that the factor grows with the steps, not the digits."""


async def tokens(kind: type[Agent], task: Task) -> int:
    journal, faulty = MemoryJournal(), FaultyTools(None)
    agent = kind(ScriptedWorker(task), faulty.wrap(builtin_tools()), journal=journal)
    done = await attempt(agent, task, faulty, journal)
    assert done.outcome == "completed", f"{kind.__name__}: {task.id}: {done.why or done.error}"
    return done.usage.input_tokens + done.usage.output_tokens


async def main() -> None:
    by_calls: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for task in read_yaml(TASKS.read_text()).tasks:
        if task.fault or not task.script or not task.script.calls or "#E" in str(task.script.calls):
            continue
        pair = await tokens(ReActAgent, task), await tokens(ReWOOAgent, task)
        by_calls[len(task.script.calls)].append(pair)
    print(f"{'calls':>12} {'tasks':>6} {'ReAct':>8} {'ReWOO':>8} {'factor':>7}")
    for calls, pairs in sorted(by_calls.items()):
        react, rewoo = (mean(column) for column in zip(*pairs, strict=True))
        print(f"{calls:>12} {len(pairs):>6} {react:>8,.0f} {rewoo:>8,.0f} {react / rewoo:>6.2f}×")
    print(f"\n{'published':>12} {'steps':>6} {'ReAct':>8} {'ReWOO':>8} {'factor':>7}")
    for name, (react, rewoo, steps, _) in PUBLISHED.items():
        print(f"{name:>12} {steps:>6.2f} {react:>8,} {rewoo:>8,} {react / rewoo:>6.2f}×")
    print(WORDS)


if __name__ == "__main__":
    asyncio.run(main())
