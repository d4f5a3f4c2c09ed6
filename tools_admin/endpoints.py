"""Does an endpoint answer at all? A look from the web process, without a model call."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agentapp.encryption import UndecryptableSecret
from agentapp.outbound import OutboundError, Policy, fetch
from tools_admin.models import Provider

SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Reach:
    """`problem` is empty when the endpoint answered with a list of models, else what it said instead."""

    provider: Provider
    milliseconds: int
    problem: str


async def reach_all(providers: Sequence[Provider]) -> list[Reach]:
    """All at once, each at most `SECONDS`."""
    return await asyncio.gather(*(_reach(provider) for provider in providers))


async def _reach(provider: Provider) -> Reach:
    begun = asyncio.get_running_loop().time()
    url = provider.base_url.rstrip("/") + "/models"
    problem = ""
    try:
        key = provider.api_key.get_secret_value()
        headers = {"Authorization": f"Bearer {key}", "api-key": key} if key else {}
        policy = Policy(max_bytes=4_000_000).allowing(url)  # an administrator configured this very host
        answer = await fetch("GET", url, policy=policy, headers=headers, timeout=SECONDS)
        # 404 and 405 come from an endpoint that is there and has no list of models.
        if answer.status_code >= 400 and answer.status_code not in (404, 405):
            problem = f"HTTP {answer.status_code} {answer.reason_phrase}".strip()
    except (OutboundError, UndecryptableSecret) as error:
        problem = str(error)
    return Reach(provider, round((asyncio.get_running_loop().time() - begun) * 1_000), problem)
