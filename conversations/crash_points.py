"""Points at which tests make a process die, to prove that runs survive it there.

`CRASH_AT` names one; it is empty in every installation.

K1   message and run committed, before the enqueue        K7   tool's effect done, result not recorded
K2   after the claim                                      K8   tool's result recorded, before the next call
K3   during a model call                                  K9   all but one of parallel calls recorded
K4   model answered, nothing recorded                     K10  in the middle of the streamed answer
K5   model's reply recorded, nothing dispatched           K11  decision committed, before the enqueue
K6   tool's start recorded, effect not done               K12  last effect recorded, before the end
"""

import asyncio
import os
import signal

from django.conf import settings

from agentapp.engine import CallKind

DURING_SECONDS = 0.3
_BEFORE = {CallKind.TOOL: "K6"}
_DONE = {CallKind.LLM: "K4", CallKind.TOOL: "K7"}
_RECORDED = {CallKind.LLM: "K5", CallKind.TOOL: "K8"}


def reach(point: str | None) -> None:
    """Ends this process without a word if it is meant to die here."""
    if point and point == settings.CRASH_AT:
        os.kill(os.getpid(), signal.SIGKILL)


def before(kind: CallKind) -> None:
    reach(_BEFORE.get(kind))
    if kind is CallKind.LLM and settings.CRASH_AT == "K3":
        asyncio.get_running_loop().call_later(DURING_SECONDS, reach, "K3")


def done(kind: CallKind) -> None:
    reach(_DONE.get(kind))


def recorded(kind: CallKind, others_open: int) -> None:
    reach(_RECORDED.get(kind))
    if kind is CallKind.TOOL and others_open == 1:
        reach("K9")
