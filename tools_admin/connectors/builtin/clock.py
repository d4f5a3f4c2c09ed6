from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tools_admin.connectors.builtin.places import find_zone


def current_time(place: str) -> str:
    """Date and time there, in one line; raises `ToolError` for a place nobody knows."""
    return describe_time(place, datetime.now(UTC))


def describe_time(place: str, now: datetime) -> str:
    zone = find_zone(place)
    local = now.astimezone(ZoneInfo(zone))
    offset = f"{local:%z}"
    date = f"{local:%A}, {local.day} {local:%B %Y}, {local:%H:%M}"
    return f"{place.strip()}: {date} (UTC{offset[:3]}:{offset[3:]}, {zone})"
