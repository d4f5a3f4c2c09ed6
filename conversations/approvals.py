"""Permission at the moment of a call, outside the model's reach: the tool, the person, and a person's approval.

`permit` is the only way to a tool; it runs before every call that has no record. What was approved is what runs: an
approval is bound to the digest of the proposed arguments and used up in the transaction that records the call.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from agentapp.engine import Allow, Deny, DraftRules, RunSuspended, Tool
from conversations import live
from conversations.cleaning import clean
from conversations.crash_points import reach
from conversations.errors import (
    AlreadyDecided,
    ApprovalExpired,
    InvalidArguments,
    InvalidDraft,
    NotApprover,
    NotFound,
    NotLasting,
)
from conversations.events import KeyedEvent
from conversations.lifecycle import add_events, after_commit, put_back
from conversations.models import Approval, Run
from conversations.open_calls import digest
from tools_admin.models import Agent
from tools_admin.models import Tool as ToolRow

# What a signature under a draft is asked for, in place of a tool's name.
SIGN = "publish_answer"
DECISIONS = {
    "approve": Approval.State.APPROVED,
    "allow": Approval.State.APPROVED,  # this call and further ones of the tool in this conversation
    "reject": Approval.State.REJECTED,
    "withdraw": Approval.State.SUPERSEDED,
}
_DENIED = {
    Approval.State.REJECTED: "The user rejected this call. Do not try it again; say what was not done, and ask.",
    Approval.State.EXPIRED: "Nobody decided on this call in time, so it did not run.",
    Approval.State.SUPERSEDED: "The user withdrew this request and said something else instead.",
}


def permit(run: Run, name: str, arguments: dict[str, Any], key: str) -> Allow | Deny:
    """Whether the call of this tool may run now. Raises RunSuspended when a person has to say so first."""
    visible = ToolRow.objects.visible_to(User.objects.get(id=run.user_id)).select_related("connector")
    row = visible.filter(name=name).first()
    if row is None:
        return Deny(f"The tool {name} is not available any more.")
    if not row.asks_first:
        return Allow()
    approval = _asked(run, name, clean(arguments), key, tool=row.fingerprint, allowed=_is_allowed(run, row))
    if approval.tool_digest != row.fingerprint:
        return Deny(f"The tool {name} is not what it was when a person was asked. Call it anew if it is still wanted.")
    if approval.digest != digest({"name": name, "arguments": clean(arguments)}):
        return Deny("The arguments differ from those that a person was asked about.")
    if approval.state == Approval.State.PENDING:
        raise RunSuspended("approval", key)
    if approval.state in (Approval.State.APPROVED, Approval.State.CONSUMED):
        return Allow(approval.edited)
    reason = _DENIED[Approval.State(approval.state)]
    return Deny(f"{reason} Their comment: {approval.comment}" if approval.comment else reason)


def ask_to_sign(run: Run, draft: dict[str, Any], key: str) -> Allow | Deny:
    """The signature under a draft, which is asked for like a call. A `Deny` says in a word what became of it."""
    approval = _asked(run, SIGN, clean(draft), key)
    if approval.state == Approval.State.PENDING:
        raise RunSuspended("approval", key)
    if approval.digest != digest({"name": SIGN, "arguments": clean(draft)}):
        return Deny("another_draft")
    if approval.state in (Approval.State.APPROVED, Approval.State.CONSUMED):
        return Allow(approval.edited)
    return Deny(str(approval.state))


def _is_allowed(run: Run, tool: ToolRow) -> bool:
    """Whether the person of the run said "allow" to this tool in this conversation; never where others decide or each
    call is asked about."""
    return (
        tool.approval != ToolRow.Approval.ALWAYS
        and tool.approvers_id is None
        and (
            Approval.objects.filter(run__conversation_id=run.conversation_id, lasting=True)
            .filter(tool_name=tool.name, tool_digest=tool.fingerprint)
            .filter(decided_by_id=run.user_id, state__in=[Approval.State.APPROVED, Approval.State.CONSUMED])
            .exists()
        )
    )


def _asked(
    run: Run, tool_name: str, arguments: dict[str, Any], key: str, *, tool: str = "", allowed: bool = False
) -> Approval:
    """The request of this call, made now if there is none. What was allowed before is approved and on record."""
    decided = {
        "state": Approval.State.APPROVED,
        "comment": "Allowed for this conversation.",
        "decided_by_id": run.user_id,
        "decided_at": timezone.now(),
    }
    approval, _ = Approval.objects.get_or_create(
        run=run,
        key=key,
        defaults={
            "tool_name": tool_name,
            "arguments": arguments,
            "digest": digest({"name": tool_name, "arguments": arguments}),
            "tool_digest": tool,
            "expires_at": min(timezone.now() + timedelta(days=settings.APPROVAL_DAYS), run.deadline),
            **(decided if allowed else {}),
        },
    )
    return approval


def decide(
    user: User, approval_id: UUID, decision: str, *, edited: dict[str, Any] | None = None, comment: str = ""
) -> Approval:
    """One decision wins; the same one again changes nothing. The run goes on where it stopped.

    Raises NotFound, NotApprover, AlreadyDecided, ApprovalExpired, InvalidArguments, InvalidDraft, NotLasting.
    """
    state = DECISIONS[decision]
    with transaction.atomic(durable=True):
        approval = Approval.objects.visible_to(user).filter(id=approval_id).first()
        if approval is None or (decision == "withdraw" and approval.run.user_id != user.pk):
            raise NotFound("request")
        run = Run.objects.select_for_update().get(id=approval.run_id)
        approval.refresh_from_db()
        if decision != "withdraw":
            _check_approver(approval, user, run)
        if approval.state != Approval.State.PENDING:
            return _decided_before(approval, state)
        if approval.expires_at <= timezone.now():
            raise ApprovalExpired
        if edited is not None and edited != approval.arguments:
            approval.edited = _checked(approval.tool_name, clean(edited))
        if approval.tool_name == SIGN and state == Approval.State.APPROVED:
            _check_draft(run, approval.edited or approval.arguments)
        if decision == "allow":
            _check_lasting(approval, user, run)
            approval.lasting = True
        approval.comment, approval.decided_by, approval.decided_at = clean(comment)[:1_000], user, timezone.now()
        _settle(run, approval, state)
    return approval


def expire_approvals() -> None:
    """Absence of a decision is not an approval: the model is told, the run goes on."""
    overdue = Approval.objects.filter(state=Approval.State.PENDING, expires_at__lt=timezone.now())
    for approval_id, run_id in overdue.values_list("id", "run_id")[:500]:
        with transaction.atomic():
            run = Run.objects.select_for_update().get(id=run_id)
            approval = Approval.objects.get(id=approval_id)
            if approval.state == Approval.State.PENDING:
                _settle(run, approval, Approval.State.EXPIRED)


def approval_data(approval: Approval) -> dict[str, Any]:
    """The `approval` event of `docs/protocol.md`."""
    shown = "approved" if approval.state == Approval.State.CONSUMED else approval.state
    return {
        "approval_id": str(approval.id),
        "status": str(shown),
        "tool_name": approval.tool_name,
        "tool_args": approval.edited if approval.edited is not None else approval.arguments,
        "expires_at": approval.expires_at.isoformat(timespec="seconds"),
        "comment": approval.comment,
        "approvers": str(approvers_of(approval.tool_name) or ""),
    }


def request_data(run: Run, key: str) -> dict[str, Any]:
    """What waits for a decision at this position."""
    return approval_data(run.approvals.get(key=key))


def approvers_of(tool_name: str) -> Group | None:
    """The group that decides on calls of this tool; None: the person whose run it is."""
    tool = ToolRow.objects.filter(name=tool_name).select_related("approvers").first()
    return tool.approvers if tool else None


def _check_approver(approval: Approval, user: User, run: Run) -> None:
    """Nobody decides on a call of their own where a group decides. Raises NotApprover."""
    group = approvers_of(approval.tool_name)
    if group is not None and run.user_id == user.pk:
        raise NotApprover(group.name)


def _settle(run: Run, approval: Approval, state: Approval.State) -> None:
    """Writes the decision on the locked run, and lets the run go on if it waits."""
    approval.state = state
    approval.save()
    add_events(run, [KeyedEvent(f"approval/{approval.key}/decided", "approval", approval_data(approval))])
    after_commit(live.tell_user, run.user_id, ("approval", {"run": str(run.id), **approval_data(approval)}))
    after_commit(reach, "K11")
    if run.status == Run.Status.WAITING and run.reason == "approval":
        put_back(run)


def _decided_before(approval: Approval, state: Approval.State) -> Approval:
    same = approval.state == state or (state == Approval.State.APPROVED and approval.state == Approval.State.CONSUMED)
    if same:
        return approval
    if approval.state == Approval.State.EXPIRED:
        raise ApprovalExpired
    raise AlreadyDecided(Approval.State(approval.state).label)


def _check_draft(run: Run, draft: dict[str, Any]) -> None:
    """What is out of form or bounds cannot be signed, changed or not."""
    agent = run.agent_version.as_agent() if run.agent_version else None
    problem = draft_rules(agent).fault(draft)
    if problem is not None:
        raise InvalidDraft(problem)


def draft_rules(agent: Agent | None) -> DraftRules:
    """What an agent's drafts must keep to."""
    policy = (agent.publish_policy if agent else None) or {}
    return DraftRules(
        (agent.output_schema if agent else None) or {}, policy.get("limits", {}), policy.get("allowed", {})
    )


def _check_lasting(approval: Approval, user: User, run: Run) -> None:
    """Raises NotLasting when further calls cannot be allowed with this one."""
    if run.user_id != user.pk:
        raise NotLasting(_("Only the person whose conversation it is can allow further calls."))
    if not ToolRow.objects.filter(name=approval.tool_name, approval=ToolRow.Approval.WRITES).exists():
        raise NotLasting(_("This tool asks each time."))


def _checked(tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    tool = ToolRow.objects.filter(name=tool_name).first()
    error = Tool(tool.name, "", tool.parameters, dict).argument_error(arguments) if tool else None
    if error is not None:
        raise InvalidArguments(error)
    return arguments
