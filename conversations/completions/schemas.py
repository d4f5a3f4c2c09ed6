"""What may be asked of `/v1/chat/completions`. Plain pydantic: Ninja's own schemas wrap each of many messages."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

NAME = r"^[a-zA-Z0-9_.-]{1,64}$"
IMAGE_BY_ADDRESS = "Send images as data: URLs; the server fetches nothing from addresses in messages."


class TextPart(BaseModel):
    type: Literal["text"]
    text: str


class ImageUrl(BaseModel):
    url: str = Field(description="A data: URL.")
    detail: Literal["auto", "low", "high"] = "auto"

    @field_validator("url")
    @classmethod
    def is_data(cls, url: str) -> str:
        # A model server may stand in the inner network, and would fetch what its client must not reach.
        if not url.startswith("data:image/"):
            raise ValueError(IMAGE_BY_ADDRESS)
        return url


class ImagePart(BaseModel):
    type: Literal["image_url"]
    image_url: ImageUrl


Text = str | list[TextPart]


class SystemMessage(BaseModel):
    role: Literal["system", "developer"]
    content: Text
    name: str | None = None


class UserMessage(BaseModel):
    role: Literal["user"]
    content: str | list[Annotated[TextPart | ImagePart, Field(discriminator="type")]]
    name: str | None = None


class Function(BaseModel):
    name: str = Field(min_length=1, max_length=200)
    arguments: str


class ToolCall(BaseModel):
    id: str = Field(min_length=1, max_length=200)
    type: Literal["function"] = "function"
    function: Function


class AssistantMessage(BaseModel):
    role: Literal["assistant"]
    content: Text | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    name: str | None = None


class ToolMessage(BaseModel):
    role: Literal["tool"]
    tool_call_id: str
    content: Text


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class FunctionDefinition(BaseModel):
    name: str = Field(pattern=NAME)
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    strict: bool | None = None


class ToolDefinition(BaseModel):
    type: Literal["function"]
    function: FunctionDefinition


class StreamOptions(BaseModel):
    include_usage: bool = False
    include_obfuscation: bool = Field(default=False, description="Without effect.")


class CompletionIn(BaseModel):
    """A conversation that an agent or a route's model answers. What is not listed is refused."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(description="An id of `GET /v1/models`.", examples=["route-general"])
    messages: list[Message] = Field(min_length=1, max_length=2_000)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[ToolDefinition] | None = Field(default=None, max_length=128, description="Routes only.")
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = Field(default=None, description="Routes only.")
    parallel_tool_calls: bool | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = Field(default=None, description="Routes only.")
    logit_bias: dict[str, float] | None = Field(default=None, description="Routes only.")
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    seed: int | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1, description="Of each reply of the model.")
    reasoning_effort: str | None = Field(default=None, max_length=20)
    verbosity: str | None = Field(default=None, max_length=20)
    n: int | None = Field(default=None, description="Only 1.")
    logprobs: bool | None = Field(default=None, description="Only false.")
    user: str | None = Field(default=None, description="Kept nowhere; who asks is known by the key.")
    safety_identifier: str | None = Field(default=None, description="Without effect.")
    prompt_cache_key: str | None = Field(default=None, description="Without effect.")
    service_tier: str | None = Field(default=None, description="Without effect.")
    store: bool | None = Field(default=None, description="Without effect: every run is on record.")
    metadata: dict[str, str] | None = Field(default=None, description="Without effect.")
    x_steps: bool = Field(default=False, description="Ask for the steps of the run, as an extension.")

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
    id: str = Field(description="Stays the same when an agent is renamed.", examples=["agent-1", "route-general"])
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "agentapp"
    name: str
    description: str


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelOut]
