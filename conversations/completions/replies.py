"""What `/v1/chat/completions` answers, for the document: `stream.py` writes it, as it is read by the token."""

import json
from typing import Any, Literal

from pydantic import BaseModel, Field

from accounts.examples import RUN, example
from conversations.completions.schemas import ToolCall
from conversations.sse import described

_HEAD = {"id": f"chatcmpl-{RUN.replace('-', '')}", "created": 1769860801, "model": "agent-1"}


class ReplyMessage(BaseModel):
    role: Literal["assistant"] = Field(description="Who says it.")
    content: str | None = Field(description="The text; null beside calls of tools alone.")
    refusal: None = Field(description="Always null.")
    tool_calls: list[ToolCall] = Field([], description="Calls of the request's own tools; else left out.")


class Choice(BaseModel):
    index: Literal[0] = Field(description="There is one choice.")
    message: ReplyMessage = Field(description="The answer.")
    logprobs: None = Field(description="Always null.")
    finish_reason: str = Field(description="stop, tool_calls, length, or what the provider said.")


class PromptDetails(BaseModel):
    cached_tokens: int = Field(description="Those that came out of a cache.")


class CompletionDetails(BaseModel):
    reasoning_tokens: int = Field(description="Those that went into thinking.")


class TokensUsed(BaseModel):
    prompt_tokens: int = Field(description="What the models read.")
    completion_tokens: int = Field(description="What they wrote.")
    total_tokens: int = Field(description="Both.")
    prompt_tokens_details: PromptDetails = Field(description="Of what was read.")
    completion_tokens_details: CompletionDetails = Field(description="Of what was written.")


class StepOut(BaseModel):
    channel: str = Field(description="As in `docs/protocol.md`.")
    data: dict[str, Any] = Field(description="By channel.")


class CompletionOut(BaseModel):
    model_config = example(
        **_HEAD,
        object="chat.completion",
        choices=[
            {
                "index": 0,
                "message": {"role": "assistant", "content": "The result is 144.", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        usage={
            "prompt_tokens": 812,
            "completion_tokens": 45,
            "total_tokens": 857,
            "prompt_tokens_details": {"cached_tokens": 256},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    )

    id: str = Field(description="`chatcmpl-` and the run's id.")
    object: Literal["chat.completion"] = Field(description="What this is.")
    created: int = Field(description="Seconds since 1970.")
    model: str = Field(description="As it was asked for.")
    choices: list[Choice] = Field(min_length=1, max_length=1, description="The answer.")
    usage: TokensUsed = Field(description="Of all model calls of the run.")
    x_steps: list[StepOut] = Field([], description="What the agent did, with `x_steps: true`; else left out.")


_PIECE = {"index": 0, "delta": {"content": "The result is 144."}, "logprobs": None, "finish_reason": None}
_CHUNK = {**_HEAD, "object": "chat.completion.chunk", "choices": [_PIECE]}
STREAM = described({"data": json.dumps(_CHUNK)}, {"description": "A chunk as JSON; at last `[DONE]`."})
