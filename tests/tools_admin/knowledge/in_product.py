"""A collection of the running product whose tool every agent has, and a model that searches and cites."""

import re
from typing import Any

from tests.fake_model import think
from tests.product import Product

SETUP = """
from tests.tools_admin.knowledge.collection import make_collection
from tools_admin.models import Agent, Connector, LanguageModel, Provider, Route, RouteEntry, Tool
if not Connector.objects.filter(name="Handbook").exists():
    make_collection("Handbook", "search_handbook", uploads=True)
    provider = Provider.objects.create(name="Vectors", base_url="{url}")
    model = LanguageModel.objects.create(provider=provider, name="vectors", kind="embedding", input_price=1_000_000)
    RouteEntry.objects.create(route=Route.objects.get(name="embedding"), model=model)
for agent in Agent.objects.all():
    agent.tools.add(Tool.objects.get(name="search_handbook"))
print(Connector.objects.get(name="Handbook").pk)
"""
REMOVE = """
from tools_admin.models import Connector, Provider
Connector.objects.filter(name="Handbook").delete()
Provider.objects.filter(name="Vectors").delete()
"""


def brain(request: dict[str, Any]) -> dict[str, Any]:
    """Searches the handbook for what is asked, and cites the first passage."""
    last = request["messages"][-1]
    if last["role"] == "user" and request.get("tools") and "handbook" in str(last["content"]):
        return {"calls": [{"name": "search_handbook", "arguments": {"question": str(last["content"])[:500]}}]}
    links = re.findall(r"\[[^\[\]]+\]\(/knowledge/passages/\d+/\)", str(request["messages"]))
    return {"text": f"Up to 120 a night {links[0]}." if links else think(request).get("text", "Nothing.")}


def open_handbook(product: Product) -> int:
    """The collection's id."""
    product.model.brain = brain
    return int(product.manage("shell", "--no-imports", "-c", SETUP.format(url=product.model.url)))


def close_handbook(product: Product) -> None:
    product.model.brain = think
    product.manage("shell", "--no-imports", "-c", REMOVE)
