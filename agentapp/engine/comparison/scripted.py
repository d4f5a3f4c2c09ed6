"""A model that plays a task's script in every loop: it names the calls, reads their results, and says what it found.

It is no test of anybody's intelligence. With it the loops themselves are compared: how many calls and tokens they take
for the same work, and what becomes of a fault on the way. It tries a call twice, makes one call a turn, and leaves out
what it did not find.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ..messages import Chunk, Completion, Message, ToolCall, Usage
from ..models import ToolDefinitions
from ..tokens import estimate_tokens, text_tokens
from ..tools import canonical_arguments
from .tasks import Script, Task

TRIES = 2
NOT_FOUND = "I could not find this out: {missing} is missing."
_REFERENCE = re.compile(r"#E(\d+)")
_VALUE = re.compile(r"\{(\d+)\}")
_PART = re.compile(r"Part (\d+): ([^\n<]+)")
_EVIDENCE = re.compile(
    r"^#\S+ Part (\d+): [^\n]*\n(MISSING EVIDENCE.*?|)<result>(.*?)</result>", re.MULTILINE | re.DOTALL
)
_NOTHING = ("no rows", "no evidence found", "the tool succeeded and found nothing", "the tool succeeded without output")


class ScriptedWorker:
    """For one task. Its tokens are estimates, and none of them is cached."""

    abilities: Mapping[str, bool] = {"tool_call": True, "json_mode": True}
    context_size = 128_000
    max_output_tokens = 4_096

    def __init__(self, task: Task, name: str = "scripted") -> None:
        if task.script is None:
            raise ValueError(f"the task {task.id!r} has no script")
        self.name = name
        self._task = task
        self._script: Script = task.script

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> Completion:
        message = self._reply(messages, tools or (), tool_choice)
        written = text_tokens(message.text) + sum(text_tokens(json.dumps(c.arguments)) for c in message.tool_calls)
        usage = Usage(estimate_tokens(messages, tools or ()), written, calls=1, estimated=True)
        return Completion(message, "tool_calls" if message.tool_calls else "stop", usage)

    async def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[Chunk]:
        done = await self.chat(messages, tools=tools, tool_choice=tool_choice)
        yield Chunk(done.message.text, "", done.finish_reason, done.usage, done.message)

    def _reply(
        self, messages: Sequence[Message], tools: ToolDefinitions, choice: str | dict[str, Any] | None
    ) -> Message:
        if isinstance(choice, dict):
            name = choice["function"]["name"]
            arguments = self._decision(name, tools[0]["function"]["parameters"], messages)
            return Message.assistant("", [ToolCall("forced", name, arguments)])
        if "Your step:\n" in _request(messages):
            return self._step(messages)
        functions = [tool["function"] for tool in tools]
        if len(functions) == 1 and "request" in functions[0]["parameters"].get("properties", ()):
            return self._delegated(messages, functions[0]["name"])
        if functions:
            return self._next_call(messages)
        return Message.assistant(self._worded(messages))

    def _decision(self, name: str, schema: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
        if name == "plan":
            step = schema["properties"]["steps"]["items"]["properties"]
            return {"steps": [self._planned(n, calls="tool_args" in step) for n in self._numbers]}
        if name == "judge":
            found = self._found(_everything(messages))
            achieved = len(found) == len(self._script.calls)
            return {"achieved": achieved, "confidence": 0.9, "reasoning": "by its script", "final_answer": ""}
        return {"mode": "react", "verdict": "needs_human", "names": [], "reason": "it only plays a script"}

    @property
    def _numbers(self) -> range:
        return range(1, len(self._script.calls) + 1)

    def _planned(self, n: int, *, calls: bool) -> dict[str, Any]:
        call = self._script.calls[n - 1]
        needed = sorted({int(number) for number in _REFERENCE.findall(canonical_arguments(dict(call.arguments)))})
        task = f"Part {n}: {call.tool}"
        if calls:
            named = {"tool_name": call.tool, "tool_args": dict(call.arguments)}
            return {"id": f"E{n}", "task": task, "depends_on": [f"E{k}" for k in needed], **named}
        return {"id": f"s{n}", "task": task, "depends_on": [f"s{k}" for k in needed], "tool_hint": call.tool}

    def _next_call(self, messages: Sequence[Message]) -> Message:
        """ReAct: the first call that has not brought anything yet, or the answer."""
        found = self._from_calls(messages)
        for n in self._numbers:
            if n not in found and (call := self._call(n, messages, found)) is not None:
                return Message.assistant("", [call])
        return Message.assistant(self._answer(found))

    def _step(self, messages: Sequence[Message]) -> Message:
        """An agent that works on one part of a plan."""
        part = _PART.search(_request(messages).rpartition("Your step:\n")[2])
        n = int(part.group(1)) if part else 1
        found = {**self._found(_everything(messages)), **self._from_calls(messages)}
        if n in found:
            return Message.assistant(f"Part {n}: {found[n]}")
        call = self._call(n, messages, found)
        if call is None:
            return Message.assistant(NOT_FOUND.format(missing=f"part {n}"))
        return Message.assistant("", [call])

    def _delegated(self, messages: Sequence[Message], helper: str) -> Message:
        """An agent that has only a helper: it hands over the whole request, once."""
        results = [message.text for message in messages if message.role == "tool"]
        if results:
            return Message.assistant(results[-1].removeprefix("Error: "))
        return Message.assistant("", [ToolCall("1", helper, {"request": self._task.question})])

    def _call(self, n: int, messages: Sequence[Message], found: Mapping[int, str]) -> ToolCall | None:
        """A part's call, unless it has been tried often enough or something that it needs is missing."""
        scripted = self._script.calls[n - 1]
        text = json.dumps(dict(scripted.arguments))
        if any(int(number) not in found for number in _REFERENCE.findall(text)):
            return None
        filled = json.loads(_REFERENCE.sub(lambda m: json.dumps(found[int(m.group(1))])[1:-1], text))
        same = canonical_arguments(filled)
        made = [c for m in messages for c in m.tool_calls]
        tries = sum(call.name == scripted.tool and canonical_arguments(call.arguments) == same for call in made)
        return ToolCall(f"{n}.{tries + 1}", scripted.tool, filled) if tries < TRIES else None

    def _from_calls(self, messages: Sequence[Message]) -> dict[int, str]:
        """The values in the results of calls that were made in this conversation."""
        found: dict[int, str] = {}
        for message in messages:
            number = (message.tool_call_id or "").partition(".")[0]
            if message.role != "tool" or not number.isdecimal() or int(number) not in self._numbers:
                continue
            if (value := self._value(int(number), message.text)) is not None:
                found[int(number)] = value
        return found

    def _found(self, text: str) -> dict[int, str]:
        """The values in a prompt that lists evidence: results of calls, or what agents of parts have said."""
        found: dict[int, str] = {}
        for number, missing, result in _EVIDENCE.findall(text):
            n = int(number)
            said = _PART.search(result)
            value = said.group(2).strip() if said else self._value(n, result)
            if not missing and value is not None and n in self._numbers:
                found[n] = value
        for number, value in _PART.findall("\n".join(re.findall(r"(?s)<result>(.*?)</result>", text))):
            found.setdefault(int(number), value.strip())
        return found

    def _value(self, n: int, result: str) -> str | None:
        """The cell of the last line that the script names; nothing of a result that is none."""
        text = result.strip()
        if not text or text.startswith(("Error:", "MISSING")) or text.rstrip(".").casefold().startswith(_NOTHING):
            return None
        cells = re.split(r" \| | = ", text.splitlines()[-1])
        try:
            return cells[self._script.calls[n - 1].cell].strip()
        except IndexError:
            return None

    def _worded(self, messages: Sequence[Message]) -> str:
        """An answer out of notes or evidence; without either it knows nothing that has to be looked up."""
        text = _everything(messages)
        if "Draft of the answer:\n" in text:
            return text.rpartition("Draft of the answer:\n")[2]
        return self._answer(self._found(text))

    def _answer(self, found: Mapping[int, str]) -> str:
        missing = [f"part {n}" for n in self._numbers if n not in found]
        if missing:
            return NOT_FOUND.format(missing=", ".join(missing))
        return _VALUE.sub(lambda match: found.get(int(match.group(1)), ""), self._script.answer)


def _request(messages: Sequence[Message]) -> str:
    return next((m.text for m in messages if m.role == "user" and "Your step:\n" in m.text), "")


def _everything(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages if message.role == "user")
