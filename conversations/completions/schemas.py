"""What may be asked of `/v1/chat/completions`. Plain pydantic: Ninja's own schemas wrap each of many messages."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, field_validator

from accounts.examples import example, shown
from accounts.schemas import Number

Int = Annotated[int, Number]
Float = Annotated[float, Number]
NAME = r"^[a-zA-Z0-9_.-]{1,64}$"
IMAGE_BY_ADDRESS = "Send images as data: URLs; the server fetches nothing from addresses in messages."


class TextPart(BaseModel):
    type: Literal["text"] = Field(description="A part of text.")
    text: str = Field(description="The text.")


class ImageUrl(BaseModel):
    url: str = Field(description="A data: URL.")
    detail: Literal["auto", "low", "high"] = Field("auto", description="How closely the model looks.")

    @field_validator("url")
    @classmethod
    def is_data(cls, url: str) -> str:
        # A model server may stand in the inner network, and would fetch what its client must not reach.
        if not url.startswith("data:image/"):
            raise ValueError(IMAGE_BY_ADDRESS)
        return url


class ImagePart(BaseModel):
    type: Literal["image_url"] = Field(description="A part that is a picture.")
    image_url: ImageUrl = Field(description="The picture.")


Text = Annotated[str | list[TextPart], Field(description="A text, or parts of one.")]
Name = Annotated[str | None, Field(description="Who speaks, where several play the same role.")]


class SystemMessage(BaseModel):
    role: Literal["system", "developer"] = Field(description="Instructions; to an agent, further ones.")
    content: Text
    name: Name = None


class UserMessage(BaseModel):
    role: Literal["user"] = Field(description="The person, or the program that asks.")
    content: str | list[Annotated[TextPart | ImagePart, Field(discriminator="type")]] = Field(
        description="A text, or parts that are texts and pictures."
    )
    name: Name = None


class Function(BaseModel):
    name: str = Field(min_length=1, max_length=200, description="The tool that is called.")
    arguments: str = Field(description="JSON, as the model wrote it.")


class ToolCall(BaseModel):
    id: str = Field(min_length=1, max_length=200, description="Goes into `tool_call_id` of its result.")
    type: Literal["function"] = Field("function", description="The only kind.")
    function: Function = Field(description="What is called, and with what.")


class AssistantMessage(BaseModel):
    role: Literal["assistant"] = Field(description="What the model said before.")
    content: Text | None = Field(None, description="Its text; null beside calls of tools.")
    refusal: str | None = Field(None, description="What it said instead of an answer.")
    tool_calls: list[ToolCall] | None = Field(None, description="Calls; each needs its result behind it.")
    name: Name = None


class ToolMessage(BaseModel):
    role: Literal["tool"] = Field(description="The result of a call.")
    tool_call_id: str = Field(description="The call's id.")
    content: Text


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class FunctionDefinition(BaseModel):
    name: str = Field(pattern=NAME, description="As the model calls it.")
    description: str = Field("", description="What it does, as the model reads it.")
    parameters: dict[str, Any] = Field(
        default_factory=lambda: {"type": "object", "properties": {}}, description="JSON Schema of the arguments."
    )
    strict: StrictBool | None = Field(None, description="Whether the model must keep to the schema.")


class ToolDefinition(BaseModel):
    type: Literal["function"] = Field(description="The only kind.")
    function: FunctionDefinition = Field(description="The tool.")


class StreamOptions(BaseModel):
    include_usage: StrictBool = Field(default=False, description="One more chunk at the end says what was used.")
    include_obfuscation: StrictBool = Field(default=False, description="Without effect.")


ASKED: Any = {"model": "agent-1", "messages": [{"role": "user", "content": "What is 12 * 12?"}]}


class CompletionIn(BaseModel):
    """A conversation that an agent or a route's model answers. What is not listed is refused."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [ASKED]})

    model: str = Field(description="An id of `GET /v1/models`.")
    messages: list[Message] = Field(min_length=1, max_length=2_000, description="What was said; the question is last.")
    stream: StrictBool | None = Field(False, description="Send the answer piece by piece, as server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="Of a stream.")
    tools: list[ToolDefinition] | None = Field(default=None, max_length=128, description="Routes only.")
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = Field(
        default=None, description="Whether tools may or must be called. Routes only."
    )
    response_format: dict[str, Any] | None = Field(default=None, description="Routes only.")
    parallel_tool_calls: StrictBool | None = Field(default=None, description="Several calls at once. Routes only.")
    stop: str | Annotated[list[str], Field(max_length=4)] | None = Field(default=None, description="Routes only.")
    logit_bias: dict[str, Float] | None = Field(default=None, description="Routes only.")
    temperature: Float | None = Field(default=None, ge=0, le=2, description="The higher, the more varied.")
    top_p: Float | None = Field(default=None, ge=0, le=1, description="How much of what is likely is considered.")
    presence_penalty: Float | None = Field(default=None, ge=-2, le=2, description="Against what was said already.")
    frequency_penalty: Float | None = Field(default=None, ge=-2, le=2, description="Against saying the same often.")
    seed: Int | None = Field(default=None, description="The same one gives much the same answer.")
    max_tokens: Int | None = Field(default=None, ge=1, description="The older name of `max_completion_tokens`.")
    max_completion_tokens: Int | None = Field(default=None, ge=1, description="Of each reply of the model.")
    reasoning_effort: str | None = Field(default=None, max_length=20, description="How long the model thinks.")
    verbosity: str | None = Field(default=None, max_length=20, description="How much the model writes.")
    n: Int | None = Field(default=None, description="Only 1.")
    logprobs: StrictBool | None = Field(default=None, description="Only false.")
    user: str | None = Field(default=None, description="Kept nowhere; who asks is known by the key.")
    safety_identifier: str | None = Field(default=None, description="Without effect.")
    prompt_cache_key: str | None = Field(default=None, description="Without effect.")
    service_tier: str | None = Field(default=None, description="Without effect.")
    store: StrictBool | None = Field(default=None, description="Without effect: every run is on record.")
    metadata: dict[str, str] | None = Field(default=None, description="Without effect.")
    x_steps: StrictBool = Field(default=False, description="Ask for the steps of the run, as an extension.")

    @field_validator("n")
    @classmethod
    def one_choice(cls, n: int | None) -> int | None:
        if n not in (None, 1):
            raise ValueError("Only one choice is made: leave `n` out, and ask several times.")
        return n

    @field_validator("logprobs")
    @classmethod
    def no_logprobs(cls, wanted: bool | None) -> bool | None:
        if wanted:
            raise ValueError("Log probabilities are not available: leave `logprobs` out.")
        return wanted

    @field_validator("response_format")
    @classmethod
    def known_format(cls, form: dict[str, Any] | None) -> dict[str, Any] | None:
        if form is not None and form.get("type") not in ("text", "json_object", "json_schema"):
            raise ValueError("The type must be text, json_object or json_schema.")
        if form is not None and form["type"] == "json_schema" and not isinstance(form.get("json_schema"), dict):
            raise ValueError("A format of type json_schema needs `json_schema` with `name` and `schema`.")
        return None if form == {"type": "text"} else form


# What goes into each request to a model, as it is; the second row only where one model call answers.
SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "reasoning_effort", "verbosity")
LENGTHS = ("max_tokens", "max_completion_tokens")
ONE_CALL = ("stop", "logit_bias", "parallel_tool_calls")
CALL = ("tools", "tool_choice", "response_format")


class ModelOut(BaseModel):
    model_config = example(
        id="agent-1",
        object="model",
        created=0,
        owned_by="agentapp",
        name="Demo agent",
        description="Calculates, tells the time anywhere and looks into the data of a fictitious outdoor shop.",
    )

    id: str = Field(description="Stays the same when an agent is renamed.")
    object: Literal["model"] = Field("model", description="What this is.")
    created: int = Field(0, description="Always 0.")
    owned_by: str = Field("agentapp", description="Always the same.")
    name: str = Field(description="As people read it.")
    description: str = Field(description="What it is for; perhaps empty.")


class ModelList(BaseModel):
    model_config = example(object="list", data=shown(ModelOut))

    object: Literal["list"] = Field("list", description="What this is.")
    data: list[ModelOut] = Field(description="Agents, then routes.")
