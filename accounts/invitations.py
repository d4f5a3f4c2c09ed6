"""Invitations: a link that makes one account, with the groups its sender chose."""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.mail import send_mail
from django.db import transaction
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.errors import InvitationInvalid, MayNotHandOut
from accounts.models import Invitation, User
from accounts.roles import MANAGE_PEOPLE, groups_within
from accounts.services import digest_of

_SESSION_KEY = "invitation"


def invite(sender: User, groups: Iterable[Group] = (), email: str = "", days: float = 0.0) -> tuple[Invitation, str]:
    """An invitation and the path of its link, which exists nowhere else. Raises `MayNotHandOut`."""
    chosen = list(groups)
    if not _may_hand_out(sender, chosen):
        raise MayNotHandOut(_("You can only hand out groups whose rights you have yourself."))
    token = secrets.token_urlsafe(32)
    expires_at = timezone.now() + timedelta(days=days or settings.INVITATION_DAYS)
    with transaction.atomic():
        made = Invitation.objects.create(digest=digest_of(token), email=email, invited_by=sender, expires_at=expires_at)
        made.groups.set(chosen)
    return made, reverse("invitation", args=[token])


def mail(invitation: Invitation, link: str) -> None:
    """Sends the absolute `link` to the invitation's address, in the site's language. Raises `OSError`."""
    with translation.override(settings.LANGUAGE_CODE):
        text = render_to_string("accounts/invitation_mail.txt", {"invitation": invitation, "link": link})
        send_mail(_("You are invited"), text, None, [invitation.email])


def withdraw(invitation: Invitation) -> None:
    Invitation.objects.filter(pk=invitation.pk, used_at=None, withdrawn_at=None).update(withdrawn_at=timezone.now())


def is_open(token: str) -> bool:
    return find(token) is not None


def find(token: str) -> Invitation | None:
    """The invitation that the token opens now: its sender still may, and its address has no account meanwhile."""
    found = Invitation.objects.open().select_related("invited_by").filter(digest=digest_of(token)).first()
    if found is None or not _may_hand_out(found.invited_by, list(found.groups.all())):
        return None
    taken = found.email and User.objects.filter(email__iexact=found.email).exists()
    return None if taken else found


@contextmanager
def redeeming(token: str) -> Iterator[Invitation | None]:
    """Uses the invitation up together with what is done inside, or neither; without a token there is none.

    Raises `InvitationInvalid`. Of two at once the second waits for the first one's commit and finds it used.
    """
    with transaction.atomic():
        if not token:
            yield None
            return
        found = find(token)
        # By conditions of the row itself: one that joins becomes a subquery, which whoever waited does not ask again.
        unused = Invitation.objects.filter(digest=digest_of(token), used_at=None, withdrawn_at=None)
        if found is None or not unused.update(used_at=timezone.now()):
            raise InvitationInvalid(_("This invitation has been used, withdrawn, or is too old."))
        yield found


def used_by(invitation: Invitation, user: User) -> None:
    user.groups.add(*invitation.groups.all())
    Invitation.objects.filter(pk=invitation.pk).update(used_by=user)


def redeem(token: str, username: str, password: str, email: str = "") -> User:
    """Makes the account; raises `InvitationInvalid`. The invitation's own address goes before `email`."""
    with redeeming(token) as invitation:
        if invitation is None:
            raise InvitationInvalid(_("This invitation has been used, withdrawn, or is too old."))
        user = User.objects.create_user(username, invitation.email or email, password)
        used_by(invitation, user)
        return user


def accept(request: HttpRequest, token: str) -> None:
    """Remembers the token while its holder signs in elsewhere (`accounts.oidc`); an empty one is forgetting."""
    request.session[_SESSION_KEY] = token


def accepted(request: HttpRequest) -> str:
    return str(request.session.get(_SESSION_KEY, ""))


def _may_hand_out(sender: User, groups: list[Group]) -> bool:
    if not (sender.is_active and sender.has_perm(MANAGE_PEOPLE)):
        return False
    within = set(groups_within(sender).filter(pk__in=[group.pk for group in groups]).values_list("pk", flat=True))
    return all(group.pk in within for group in groups)
