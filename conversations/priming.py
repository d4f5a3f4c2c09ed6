"""The demo model reads its long worked examples once, before the first question has to wait for that."""

import asyncio
import logging

from django.db import DatabaseError

from accounts.models import User
from agentapp.database import in_thread
from agentapp.engine import ModelError, ReActAgent
from conversations.preparation import Equipment, equip
from tools_admin import services as configuration
from tools_admin.clients import ModelClients
from tools_admin.errors import NoModel
from tools_admin.models import Provider

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
WAITING = ("downloading", "loading")


async def prime_demo_model(models: ModelClients) -> None:
    """Waits until the demo model is there and asks it something; the server keeps what it has read."""
    try:
        while (await in_thread(configuration.model_status))["state"] in WAITING:  # noqa: ASYNC110 - a file says so
            await asyncio.sleep(POLL_SECONDS)
        equipment = await in_thread(_demo_equipment, models)
        if equipment is None:
            return
        agent = ReActAgent(
            equipment.model,
            equipment.tools,
            instructions=equipment.instructions,
            examples=equipment.examples,
            max_iterations=1,
        )
        await agent.run("Hello")
        log.info("The demo model has read its examples.")
    except (ModelError, NoModel, DatabaseError) as error:
        log.warning("The demo model was not prepared (%s); its first answer takes longer.", error)


def _demo_equipment(models: ModelClients) -> Equipment | None:
    agent = configuration.default_agent()
    row = configuration.choose(agent).model
    if agent is None or row.provider.source != Provider.Source.DEMO:
        return None
    return equip(agent, User(is_active=True), [row], models)
