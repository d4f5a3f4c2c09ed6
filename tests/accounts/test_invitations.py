import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core import mail
from django.utils import timezone

from accounts import invitations
from accounts.errors import InvitationInvalid, MayNotHandOut
from accounts.models import Invitation, User
from accounts.roles import MANAGE_PEOPLE, permissions_called
from tests.accounts.conftest import PASSWORD
from tests.at_once import at_once

ADD = "/admin/accounts/invitation/add/"
ANSWERS = {"username": "lin", "email": "lin@example.org", "password1": PASSWORD, "password2": PASSWORD}


@pytest.fixture
def manager(grace: User) -> User:
    grace.user_permissions.set(permissions_called([MANAGE_PEOPLE]))
    return User.objects.get(pk=grace.pk)


def invite(sender: User, **options: Any) -> str:
    return invitations.invite(sender, **options)[1]


def token_of(link: str) -> str:
    return link.strip("/").rpartition("/")[2]


def test_the_invited_gets_an_account_with_groups_and_is_signed_in(browser, ada):
    team = Group.objects.create(name="Team")
    link = invite(ada, groups=[team])
    page = browser.get(link)
    assert page.status_code == 200 and "no-store" in page["Cache-Control"]
    assert browser.post(link, ANSWERS)["Location"] == "/"
    user = User.objects.get(username="lin")
    assert list(user.groups.all()) == [team] and user.email == "lin@example.org" and not user.is_staff
    assert browser.session["_auth_user_id"] == str(user.pk)
    assert Invitation.objects.get().used_by == user


def test_an_invitation_works_once(browser, client, ada):
    link = invite(ada)
    browser.post(link, ANSWERS)
    assert client.get(link).status_code == 404
    assert client.post(link, {**ANSWERS, "username": "eve", "email": ""}).status_code == 404
    assert not User.objects.filter(username="eve").exists()


def test_used_withdrawn_late_and_invented_links_get_the_same_answer(client, ada):
    used, withdrawn, late, orphan = (invite(ada) for _ in range(4))
    invitations.redeem(token_of(used), "one", PASSWORD)
    invitations.withdraw(invitations.find(token_of(withdrawn)))
    Invitation.objects.filter(pk=invitations.find(token_of(late)).pk).update(expires_at=timezone.now())
    other = User.objects.create_superuser("other")
    Invitation.objects.filter(pk=invitations.find(token_of(orphan)).pk).update(invited_by=other)
    User.objects.filter(pk=other.pk).update(is_active=False)
    answers = [client.get(link) for link in (used, withdrawn, late, orphan, "/invitation/abc/")]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1


def test_the_address_of_an_invitation_is_the_accounts_own(browser, ada):
    link = invite(ada, email="lin@example.org")
    assert 'name="email"' not in browser.get(link).content.decode()
    browser.post(link, {**ANSWERS, "email": "eve@example.org"})
    assert User.objects.get(username="lin").email == "lin@example.org"


def test_unknown_fields_change_nothing(browser, ada):
    browser.post(invite(ada), {**ANSWERS, "is_staff": "on", "is_superuser": "on", "groups": "1", "is_active": ""})
    user = User.objects.get(username="lin")
    assert not (user.is_staff or user.is_superuser or user.groups.exists()) and user.is_active


def test_a_mistake_leaves_the_link_open(browser, ada, grace):
    link = invite(ada)
    for wrong in ({"password2": "other"}, {"username": "GRACE"}, {"email": "Grace@example.org"}):
        assert browser.post(link, {**ANSWERS, **wrong}).context["form"].errors
    assert browser.post(link, ANSWERS).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_redemptions_one_succeeds(ada):
    token = token_of(invite(ada))
    outcomes = at_once(4, lambda number: invitations.redeem(token, f"user{number}", PASSWORD))
    assert sum(isinstance(outcome, User) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, InvitationInvalid) for outcome in outcomes) == 3
    assert User.objects.filter(username__startswith="user").count() == 1


def test_nobody_hands_out_more_than_they_have(manager):
    harmless, mine = Group.objects.create(name="Chess"), Group.objects.get(name="People managers")
    invitations.invite(manager, [harmless, mine])
    for name in ("Administrators", "Configuration", "Auditors"):
        with pytest.raises(MayNotHandOut):
            invitations.invite(manager, [Group.objects.get(name=name)])


def test_an_invitation_falls_with_the_rights_of_its_sender(manager, ada):
    group = Group.objects.create(name="Chess")
    token = token_of(invite(manager, groups=[group]))
    group.permissions.set(permissions_called(["accounts.configure"]))
    assert not invitations.is_open(token), "the group has become more than its sender may hand out"
    group.permissions.clear()
    assert invitations.is_open(token)
    manager.user_permissions.clear()
    assert not invitations.is_open(token)


def test_only_the_fingerprint_is_stored(ada):
    assert token_of(invite(ada)) not in str(list(Invitation.objects.values()))


def test_an_administrator_invites_by_mail_and_sees_the_link_once(client, ada):
    client.force_login(ada)
    team = Group.objects.create(name="Team")
    page = client.post(ADD, {"email": "lin@example.org", "groups": [team.pk], "days": "3"})
    link = re.search(r"http://testserver(/invitation/[\w-]+/)", page.content.decode())
    assert link and "no-store" in page["Cache-Control"]
    assert mail.outbox[0].to == ["lin@example.org"] and link[0] in mail.outbox[0].body
    made = Invitation.objects.get()
    assert list(made.groups.all()) == [team]
    assert timedelta(days=2.9) < made.expires_at - timezone.now() <= timedelta(days=3)
    for path in ("/admin/accounts/invitation/", f"/admin/accounts/invitation/{made.pk}/change/"):
        page = client.get(path)
        assert page.status_code == 200 and token_of(link[1]) not in page.content.decode()


def test_a_mail_server_that_is_away_still_gives_the_link(client, ada, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    client.force_login(ada)
    page = client.post(ADD, {"email": "lin@example.org", "days": "3"}).content.decode()
    assert "could not be sent" in page and "/invitation/" in page


def test_an_address_with_an_account_is_not_invited(client, ada, grace):
    client.force_login(ada)
    page = client.post(ADD, {"email": "GRACE@example.org", "days": "3"})
    assert "An account has this address already." in page.content.decode()
    assert not Invitation.objects.exists()


def test_a_manager_is_offered_what_they_may_hand_out_and_can_withdraw(client, manager):
    client.force_login(manager)
    page = client.get(ADD)
    offered = {group.name for group in page.context["adminform"].form.fields["groups"].queryset}
    assert offered == {"People managers", "Members"}
    administrators = Group.objects.get(name="Administrators")
    client.post(ADD, {"groups": [administrators.pk], "days": "3"})
    assert not Invitation.objects.exists()
    client.post(ADD, {"days": "3"})
    made = Invitation.objects.get()
    client.post("/admin/accounts/invitation/", {"action": "withdraw", "_selected_action": [made.pk]})
    made.refresh_from_db()
    assert made.withdrawn_at
