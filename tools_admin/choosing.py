"""Which of a connector's operations are tools: offers, choices, and what a new look at the source changes.

Looking again never widens a right: what a tool may do, who may use it and when it asks stay as they were decided,
and an operation that turns from reading to writing is treated as writing at once.
"""

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from tools_admin.models import Connector, Tool

if TYPE_CHECKING:
    from tools_admin.connectors.base import ToolSpec

LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Offer:
    """An operation at the source, the tool made from it, or both; and what differs between them."""

    key: str
    spec: "ToolSpec | None"
    tool: Tool | None
    changes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.tool.name if self.tool else self.spec.name if self.spec else self.key

    @property
    def description(self) -> str:
        return self.spec.description if self.spec else self.tool.description if self.tool else ""

    @property
    def parameters(self) -> tuple[str, str]:
        """Those of the source and those that were chosen, as JSON."""
        both = (self.spec.parameters if self.spec else {}, self.tool.parameters if self.tool else {})
        return json.dumps(both[0], ensure_ascii=False), json.dumps(both[1], ensure_ascii=False)

    @property
    def reads(self) -> bool:
        effect = self.spec.effect_class.value if self.spec else str(self.tool and self.tool.effect_class)
        return effect in ("pure", "read")


def offers(connector: Connector, specs: Sequence["ToolSpec"]) -> list[Offer]:
    """Everything that is there or was chosen: chosen ones first, then what only reads, by name."""
    tools = {tool.key: tool for tool in connector.tools.all()}
    found = [Offer(key_of(spec), spec, tool := tools.pop(key_of(spec), None), _changes(spec, tool)) for spec in specs]
    gone = [Offer(tool.key, None, tool) for tool in tools.values()]
    return sorted(
        [*gone, *found],
        key=lambda offer: (offer.tool is None, not offer.reads, offer.name),
    )


def key_of(spec: "ToolSpec") -> str:
    return spec.key or spec.name


def _changes(spec: "ToolSpec", tool: Tool | None) -> tuple[str, ...]:
    if tool is None:
        return ()
    pairs = {
        "description": (spec.description, tool.description),
        "parameters": (spec.parameters, tool.parameters),
        "definition": (spec.definition, tool.definition),
    }
    changed = [name for name, (new, old) in pairs.items() if new != old]
    if spec.effect_class.value in Tool.WRITING and tool.effect_class not in Tool.WRITING:
        changed.append("effect")
    return tuple(changed)


@transaction.atomic
def choose(connector: Connector, specs: Sequence["ToolSpec"], wanted: Collection[str], shown: Collection[str]) -> None:
    """Makes tools of wanted operations, renews those that are there, removes those shown and not wanted."""
    connector.tools.filter(key__in=set(shown) - set(wanted)).delete()
    taken = set(Tool.objects.values_list("name", flat=True))
    tools = {tool.key: tool for tool in connector.tools.all()}
    for spec in specs:
        key = key_of(spec)
        if key not in wanted:
            continue
        tool = tools.get(key)
        if tool is None:
            name = tool_name(connector, spec, taken)
            taken.add(name)
            tool = Tool(connector=connector, key=key, name=name, effect_class=spec.effect_class.value)
            tool.timeout, tool.max_result_chars = max(spec.timeout, connector.timeout + 5), spec.max_result_chars
        elif spec.effect_class.value in Tool.WRITING and tool.effect_class not in Tool.WRITING:
            tool.effect_class = spec.effect_class.value
        tool.description, tool.parameters, tool.definition = spec.description, spec.parameters, spec.definition
        tool.changed = False  # somebody has seen what it is now
        tool.save()


def tool_name(connector: Connector, spec: "ToolSpec", taken: Collection[str]) -> str:
    """A name that every provider takes, the same for the same operation: a digest tells apart what would collide."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", spec.name).strip("_") or "tool"
    if connector.prefix and not name.startswith(f"{connector.prefix}_"):
        name = f"{connector.prefix}_{name}"
    digest = hashlib.sha256(f"{connector.pk}\0{key_of(spec)}".encode()).hexdigest()
    if len(name) <= LONGEST_NAME and name not in taken:
        return name
    for length in (6, 12, 24):
        short = f"{name[: LONGEST_NAME - length - 1]}_{digest[:length]}"
        if short not in taken:
            return short
    raise ValueError(f"no name is left for {key_of(spec)!r}")
