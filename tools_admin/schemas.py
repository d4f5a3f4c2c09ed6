"""What the API tells of agents, tools and models."""

from ninja import Schema
from pydantic import Field

from accounts.examples import AGENT, example
from tools_admin.models import LanguageModel


class AgentOut(Schema):
    model_config = example(
        id=AGENT,
        name="Demo agent",
        icon="bot",
        description="Calculates, tells the time anywhere and looks into the data of a fictitious outdoor shop.",
        mode="react",
        starters=["What is 17.5% of 1,240?", "What time is it in Lisbon?"],
        is_default=True,
    )

    id: int = Field(description="Goes into `agent` of other calls; `/v1` calls it `agent-` and this number.")
    name: str = Field(description="As people choose it.")
    icon: str = Field(description="The name of the picture beside it.")
    description: str = Field(description="What it is for, in a sentence; perhaps empty.")
    mode: str = Field(description="How it works where nothing else is chosen.")
    starters: list[str] = Field(description="Questions to begin with.")
    is_default: bool = Field(description="Answers where no agent is named.")


class ToolOut(Schema):
    model_config = example(
        name="calculator",
        description="Work out an arithmetic expression exactly, such as 17 * (4.5 + 3) or sqrt(2) or 15% of 80.",
        parameters={"type": "object", "required": ["expression"], "properties": {"expression": {"type": "string"}}},
        effect_class="pure",
        needs_approval=False,
    )

    name: str = Field(description="As models call it.")
    description: str = Field(description="What it does, as models read it.")
    parameters: dict[str, object] = Field(description="JSON Schema of the arguments.")
    effect_class: str = Field(description="pure, read, idempotent (may be repeated) or once (is never repeated).")
    needs_approval: bool = Field(alias="asks_first", description="Each call waits until a person approves it.")


class ModelOut(Schema):
    model_config = example(name="gpt-5-mini", label="GPT-5 mini", context_size=400_000, max_output_tokens=16_384)

    name: str = Field(description="As its provider calls it.")
    label: str = Field(description="As people read it.")
    context_size: int = Field(description="Tokens that it can read and write in one call.")
    max_output_tokens: int = Field(description="Tokens that it writes in one call at most.")

    @staticmethod
    def resolve_label(row: LanguageModel) -> str:
        return str(row)
