"""REST: what the caller may use."""

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from accounts.auth import caller
from tools_admin.models import Agent, LanguageModel, Tool
from tools_admin.services import agents_for

router = Router()


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
    label: str = Field(alias="__str__")
    context_size: int
    max_output_tokens: int


@router.get("/agents", response=list[AgentOut], summary="The agents you may use, the default one first")
def list_agents(request: HttpRequest) -> list[Agent]:
    return agents_for(caller(request))


@router.get("/tools", response=list[ToolOut], summary="The tools you may use, through an agent that has them")
def list_tools(request: HttpRequest) -> list[Tool]:
    return list(Tool.objects.visible_to(caller(request)).order_by("name"))


@router.get("/models", response=list[ModelOut], summary="The models you may use")
def list_models(request: HttpRequest) -> list[LanguageModel]:
    models = LanguageModel.objects.usable().visible_to(caller(request))
    return list(models.filter(kind=LanguageModel.Kind.CHAT))
