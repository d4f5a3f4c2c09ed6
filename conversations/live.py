"""The live log of a run: a Redis stream with its durable events and answer deltas, in the order they happened.

PostgreSQL is the truth; the log only makes it quick. It may vanish at any time: then readers take durable events
from PostgreSQL and the text of an unfinished answer arrives with `done`.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import redis

from agentapp.valkey import async_client as async_client
from agentapp.valkey import sync_client as sync_client
from conversations.cleaning import to_json
from conversations.events import envelope

log = logging.getLogger(__name__)

ACTIVE_TTL_SECONDS = 24 * 3600
ENDED_TTL_SECONDS = 300
WORKERS_KEY = "workers"  # a sorted set: worker → when it was last seen, for /readyz
USER_STREAM_LENGTH = 1_000

# KEYS: for each run its log and its epoch. ARGV: for each run epoch, seconds to live, entries that the appender knows
# to be there, number of new entries, then for each of these its seq (NO_SEQ for a delta) and its envelope.
# Gives for each run its log's length; or FENCED, to a worker whose lease went to another one; or LOST, when known
# entries are not there: then nothing is appended.
APPEND = """
local lengths, at = {}, 1
for k = 1, #KEYS, 2 do
  local epoch, known, last = tonumber(ARGV[at]), tonumber(ARGV[at + 2]), at + 3 + 2 * ARGV[at + 3]
  if tonumber(redis.call('GET', KEYS[k + 1]) or '0') > epoch then
    lengths[#lengths + 1] = -1
  elseif known > 0 and redis.call('XLEN', KEYS[k]) < known then
    lengths[#lengths + 1] = -2
  else
    for i = at + 4, last, 2 do redis.call('XADD', KEYS[k], '*', ARGV[i], ARGV[i + 1]) end
    if known == 0 then
      redis.call('SET', KEYS[k + 1], epoch, 'EX', ARGV[at + 1])
      redis.call('EXPIRE', KEYS[k], ARGV[at + 1])
    end
    lengths[#lengths + 1] = redis.call('XLEN', KEYS[k])
  end
  at = last + 1
end
return lengths
"""
FENCED, LOST = -1, -2
NO_SEQ = "-"


def run_key(run: UUID | str) -> str:
    return f"run:{run}"


def run_keys(run: UUID) -> tuple[str, str]:
    """A run's log, and the latest epoch that wrote into it."""
    return run_key(run), f"{run_key(run)}:epoch"


def user_key(user_id: int) -> str:
    return f"user:{user_id}"


def tell_user(user_id: int, *news: tuple[str, dict[str, Any]]) -> None:
    """Appends channels and their data to the user's own stream (lists and other tabs). Call it after commit; failing is
    harmless."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        with sync_client().pipeline(transaction=False) as pipe:
            for channel, data in news:
                body = to_json({"channel": channel, "data": data, "at": at})
                pipe.xadd(user_key(user_id), {NO_SEQ: body}, maxlen=USER_STREAM_LENGTH, approximate=True)
            pipe.expire(user_key(user_id), ACTIVE_TTL_SECONDS)
            pipe.execute()
    except redis.RedisError as error:
        log.warning("The live channel does not answer (%s); open pages catch up when it is back.", error)


def append_events(
    run: UUID, epoch: int, entries: Sequence[tuple[int, str, dict[str, Any], datetime]], *, ended: bool
) -> None:
    """Appends events that a transaction outside a worker's loop has written. Call it after commit."""
    arguments: list[Any] = [epoch, ENDED_TTL_SECONDS if ended else ACTIVE_TTL_SECONDS, 0, len(entries)]
    for seq, channel, data, at in entries:
        arguments += [seq, envelope(run, seq, channel, data, at)]
    try:
        sync_client().eval(APPEND, 2, *run_keys(run), *arguments)
    except redis.RedisError as error:
        log.warning("The live channel does not answer (%s); open pages catch up when it is back.", error)
