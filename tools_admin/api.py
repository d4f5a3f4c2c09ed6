"""REST: what the caller may use."""

from django.http import HttpRequest
from ninja import Router

from accounts.auth import caller
from accounts.paging import IdCursor, Limit, Page, page_by_id
from accounts.schemas import PageOut
from tools_admin.models import Agent, LanguageModel, Tool
from tools_admin.schemas import AgentOut, ModelOut, ToolOut

router = Router(tags=["What you may use"])


@router.get("/agents", response=PageOut[AgentOut], summary="The agents you may use")
def list_agents(request: HttpRequest, cursor: IdCursor = None, limit: Limit = 200) -> Page[Agent]:
    """One of them is the default, which answers where none is named."""
    return page_by_id(Agent.objects.visible_to(caller(request)), cursor, limit)


@router.get("/tools", response=PageOut[ToolOut], summary="The tools you may use, through an agent that has them")
def list_tools(request: HttpRequest, cursor: IdCursor = None, limit: Limit = 200) -> Page[Tool]:
    """Agents call them; there is no call that uses one directly."""
    return page_by_id(Tool.objects.visible_to(caller(request)), cursor, limit)


@router.get("/models", response=PageOut[ModelOut], summary="The models you may use")
def list_models(request: HttpRequest, cursor: IdCursor = None, limit: Limit = 200) -> Page[LanguageModel]:
    """Those that answer people. What programs name in `/v1` are agents and routes."""
    models = LanguageModel.objects.usable().visible_to(caller(request)).filter(kind=LanguageModel.Kind.CHAT)
    return page_by_id(models, cursor, limit)
