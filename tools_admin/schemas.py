"""What the API tells of agents, tools and models."""

from ninja import Schema
from pydantic import Field

from tools_admin.models import LanguageModel


class AgentOut(Schema):
    id: int
    name: str
    icon: str
    description: str
    mode: str
    starters: list[str]
    is_default: bool = Field(description="Answers where no agent is named.")


class ToolOut(Schema):
    name: str
    description: str
    parameters: dict[str, object] = Field(description="JSON Schema of the arguments.")
    effect_class: str
    needs_approval: bool = Field(alias="asks_first", description="Each call waits until a person approves it.")


class ModelOut(Schema):
    name: str
    label: str
    context_size: int
    max_output_tokens: int

    @staticmethod
    def resolve_label(row: LanguageModel) -> str:
        return str(row)
