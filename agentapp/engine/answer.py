"""The answer's text: written by a model and sent while it is written, with a text to fall back on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .errors import LimitReached, ModelError
from .events import Event, answer_done
from .journal import CallKind
from .messages import Completion, Message, Usage
from .models import ChatModel
from .scope import Scope, llm_request
from .streaming import AnswerWriter
from .tokens import estimate_tokens

PIECE_CHARS = 400

OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Written:
    """The text that counts, what it took, and the attempt that it is."""

    text: str
    usage: Usage
    attempt: int


async def write_answer(
    scope: Scope,
    model: ChatModel,
    messages: Sequence[Message],
    fallback: str,
    *,
    attempt: int = 0,
    postscript: str = "",
    check: Callable[[str], bool] | None = None,
    on_text: OnText | None = None,
) -> Written:
    """The model's text over `messages`, in answer events and in the journal; `postscript` is added in any case.

    When the model fails before its first word, or must not be asked, `fallback` is delivered. When it fails later the
    text begins anew, with a new attempt. A text that has to pass a `check` is sent when it is whole, and replaced by
    the fallback if it fails.
    """

    async def effect() -> dict[str, Any]:
        writer = AnswerWriter(scope.voice, attempt, on_text)
        completion = await _write(model, messages, writer, fallback, check)
        if postscript:
            await writer.write(postscript)
            text = completion.message.text + postscript
            completion = replace(completion, message=replace(completion.message, content=text))
        return {**completion.to_dict(), "model": model.name, "attempt": writer.attempt}

    request = llm_request(model, messages, 0, "synthesis", {}, estimate_tokens(messages))
    if scope.recorded("answer/publish"):  # a limit stood in the way the first time
        return await publish_answer(scope, fallback + postscript, attempt=attempt, on_text=on_text)
    try:
        record = await scope.call("answer/llm/0", CallKind.LLM, request, effect, finished=_done)
    except LimitReached:
        return await publish_answer(scope, fallback + postscript, attempt=attempt, on_text=on_text)
    completion = Completion.from_dict(record)
    return Written(completion.message.text, completion.usage, record["attempt"])


async def publish_answer(scope: Scope, text: str, *, attempt: int = 0, on_text: OnText | None = None) -> Written:
    """A text that is known already, in answer events."""

    async def effect() -> dict[str, Any]:
        writer = AnswerWriter(scope.voice, attempt, on_text)
        await _copy(text, writer)
        return {"text": text, "attempt": writer.attempt}

    record = await scope.call("answer/publish", CallKind.PUBLISH, {}, effect, finished=_done)
    return Written(record["text"], Usage(), record["attempt"])


async def in_pieces(write: Callable[[OnText], Awaitable[str]]) -> AsyncGenerator[str, None]:
    """Yields what `write` hands to its argument while it works, or at its end the whole text if that was nothing."""
    pieces: list[str] = []
    ready = asyncio.Event()

    def on_text(text: str) -> None:
        pieces.append(text)
        ready.set()

    task = asyncio.ensure_future(write(on_text))
    task.add_done_callback(lambda _: ready.set())
    spoken = False
    try:
        while not task.done() or pieces:
            await ready.wait()
            ready.clear()
            while pieces:
                spoken = True
                yield pieces.pop(0)
        text = task.result()
        if not spoken:
            yield text
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))


def _done(record: dict[str, Any]) -> Iterable[Event]:
    return (answer_done(record["attempt"]),)


async def _write(
    model: ChatModel,
    messages: Sequence[Message],
    writer: AnswerWriter,
    fallback: str,
    check: Callable[[str], bool] | None,
) -> Completion:
    """The model's text, at a second attempt if the first broke off, or else the fallback."""
    for _ in range(2):
        try:
            if check is not None:
                completion = await AnswerWriter(None, 0).copy(model.stream_chat(messages))
                if not check(completion.message.text):
                    break
                await _copy(completion.message.text, writer)
            else:
                completion = await writer.copy(model.stream_chat(messages))
        except ModelError:
            if not writer.has_spoken:
                break
            writer.abandon()
            continue
        if completion.message.text.strip():
            return completion
        writer.abandon()
        break
    await _copy(fallback, writer)
    return Completion(Message.assistant(fallback), "fallback", Usage(calls=1))


async def _copy(text: str, writer: AnswerWriter) -> None:
    for start in range(0, len(text), PIECE_CHARS):
        await writer.write(text[start : start + PIECE_CHARS])
