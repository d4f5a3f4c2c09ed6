import re

import pytest
from django.contrib.auth.models import Group, Permission

from accounts import services
from accounts.models import ApiKey, User
from accounts.roles import CONFIGURE, MANAGE_PEOPLE, permissions_called
from tests.accounts.conftest import PASSWORD
from tests.factories import holder_of

USERS = "/admin/accounts/user/"
OPEN = {"scopes": ["chat"], "expires_at_0": "", "expires_at_1": ""}
KEYS = "/admin/accounts/apikey/"


@pytest.fixture
def admin(client, ada):
    client.force_login(ada)
    return client


@pytest.fixture
def manager(client, grace):
    """Grace may do everything with people that permissions can give, and is no superuser."""
    grace.user_permissions.set(permissions_called([MANAGE_PEOPLE]))
    client.force_login(grace)
    return client


def form_of(page) -> dict[str, str]:
    """The fields of a change form as a browser would send them back."""
    form = page.context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in values.items() if value not in (None, "", False, [])}


def test_an_administrator_makes_an_account(admin):
    admin.post(
        f"{USERS}add/",
        {
            "username": "grace",
            "email": "grace@example.org",
            "usable_password": "true",
            "password1": PASSWORD,
            "password2": PASSWORD,
        },
    )
    made = User.objects.get(username="grace")
    assert made.check_password(PASSWORD) and made.email == "grace@example.org"
    assert not made.is_staff and not made.is_superuser


def test_a_taken_address_is_refused_in_words(admin, grace):
    answer = admin.post(
        f"{USERS}add/",
        {
            "username": "other",
            "email": "GRACE@example.org",
            "usable_password": "true",
            "password1": PASSWORD,
            "password2": PASSWORD,
        },
    )
    assert "Another account has this e-mail address." in answer.content.decode()


def test_a_manager_cannot_make_anybody_a_superuser(manager, grace):
    page = manager.get(f"{USERS}{grace.pk}/change/")
    everything = Permission.objects.values_list("pk", flat=True)
    manager.post(
        f"{USERS}{grace.pk}/change/",
        {**form_of(page), "first_name": "Grace", "is_superuser": "on", "user_permissions": list(everything)},
    )
    grace.refresh_from_db()
    assert grace.first_name == "Grace", "the form itself was accepted"
    assert not grace.is_superuser
    assert grace.user_permissions.count() < len(everything)


def test_a_manager_cannot_touch_a_superuser(manager, ada):
    assert manager.post(f"{USERS}{ada.pk}/change/", {"username": "ada", "email": "mine@example.org"}).status_code == 403
    new = {"password1": "taken over 123", "password2": "taken over 123", "usable_password": "true"}
    assert manager.post(f"{USERS}{ada.pk}/password/", new).status_code == 403
    assert manager.post(f"{USERS}{ada.pk}/delete/", {"post": "yes"}).status_code == 403
    manager.post(USERS, {"action": "disable", "_selected_action": [ada.pk]})
    manager.post(USERS, {"action": "delete_selected", "_selected_action": [ada.pk], "post": "yes"})
    ada.refresh_from_db()
    assert ada.is_active and ada.email == "ada@example.org" and ada.check_password(PASSWORD)


def test_a_manager_cannot_take_over_a_disabled_account_with_more_rights(manager):
    """Disabled it has no rights at the moment; enabled again it has them all."""
    left = User.objects.create_user("left", "left@example.org", PASSWORD, is_active=False)
    group = Group.objects.create(name="Engineers")
    group.permissions.set(permissions_called([CONFIGURE]))
    left.groups.add(group)
    new = {"password1": "taken over 123", "password2": "taken over 123", "usable_password": "true"}
    assert manager.post(f"{USERS}{left.pk}/password/", new).status_code == 403
    changed = {"username": "left", "email": "mine@example.org", "is_active": "on"}
    assert manager.post(f"{USERS}{left.pk}/change/", changed).status_code == 403
    manager.post(USERS, {"action": "enable", "_selected_action": [left.pk]})
    left.refresh_from_db()
    assert left.check_password(PASSWORD) and left.email == "left@example.org" and not left.is_active


def test_a_manager_cannot_lift_rights_through_a_group(manager):
    group = Group.objects.create(name="Support")
    manager.post(
        f"/admin/auth/group/{group.pk}/change/",
        {"name": "Support team", "permissions": list(Permission.objects.values_list("pk", flat=True))},
    )
    group.refresh_from_db()
    assert group.name == "Support team"
    assert not group.permissions.exists()


def test_a_group_is_given_what_opens_something(admin, client):
    page = admin.get("/admin/auth/group/add/")
    offered = {
        permission.codename: permission.pk
        for permission in page.context["adminform"].form["permissions"].field.queryset
    }
    assert set(offered) == {"view_all_runs", "view_inspection", "configure", "manage_people", "approve"}
    admin.post("/admin/auth/group/add/", {"name": "Revision", "permissions": [offered["view_all_runs"]]})
    auditor = User.objects.create_user("auditor")
    auditor.groups.add(Group.objects.get(name="Revision"))
    client.force_login(auditor)
    assert client.get("/admin/conversations/run/").status_code == 200
    assert client.get("/admin/tools_admin/tool/").status_code == 403


def test_disabling_and_enabling_accounts_from_the_list(admin, ada, grace):
    admin.post(USERS, {"action": "disable", "_selected_action": [ada.pk, grace.pk]})
    grace.refresh_from_db()
    ada.refresh_from_db()
    assert not grace.is_active
    assert ada.is_active, "nobody locks themselves out"
    admin.post(USERS, {"action": "enable", "_selected_action": [grace.pk]})
    grace.refresh_from_db()
    assert grace.is_active


def test_a_new_key_is_shown_once(admin, grace):
    answer = admin.post(f"{KEYS}add/", {"user": grace.pk, "name": "CI", **OPEN})
    [text] = re.findall(r"aa_[\w-]{43}", answer.content.decode())
    assert holder_of(text) == grace
    assert "no-store" in answer["Cache-Control"]
    key = ApiKey.objects.get()
    for path in (KEYS, f"{KEYS}{key.pk}/change/", f"{KEYS}{key.pk}/history/", "/admin/"):
        page = admin.get(path).content.decode()
        assert text not in page
        assert key.digest not in page


def test_a_key_cannot_begin_expired(admin, grace):
    answer = admin.post(
        f"{KEYS}add/",
        {"user": grace.pk, "name": "CI", **OPEN, "expires_at_0": "2001-01-01", "expires_at_1": "00:00"},
    )
    assert answer.status_code == 200
    assert not ApiKey.objects.exists()


def test_only_the_name_of_a_key_can_be_changed(admin, ada, grace):
    key, text = services.create_api_key(grace, "CI")
    admin.post(f"{KEYS}{key.pk}/change/", {"name": "Nightly", "user": ada.pk, "digest": "0" * 64, "revoked_at": ""})
    key.refresh_from_db()
    assert (key.name, key.user) == ("Nightly", grace)
    assert holder_of(text) == grace


def test_revoking_from_the_list(admin, grace):
    key, text = services.create_api_key(grace, "CI")
    admin.post(KEYS, {"action": "revoke", "_selected_action": [key.pk]})
    assert holder_of(text) is None


def test_a_manager_makes_keys_for_nobody_else(manager, ada, grace):
    refused = manager.post(f"{KEYS}add/", {"user": ada.pk, "name": "mine", **OPEN})
    assert refused.status_code == 200
    assert not ApiKey.objects.exists()
    manager.post(f"{KEYS}add/", {"user": grace.pk, "name": "mine", **OPEN})
    assert ApiKey.objects.get().user == grace


@pytest.mark.parametrize("path", [USERS, KEYS])
def test_lists_take_the_same_number_of_queries_for_many_rows(admin, django_assert_max_num_queries, path):
    def fill(first: int, last: int) -> None:
        for number in range(first, last):
            services.create_api_key(User.objects.create_user(f"user{number}"), "CI")

    fill(0, 2)
    admin.get(path)
    with django_assert_max_num_queries(50) as few:
        admin.get(path)
    fill(2, 12)
    with django_assert_max_num_queries(len(few)):
        assert admin.get(path).status_code == 200


def test_a_service_account_works_by_keys_and_cannot_sign_in(admin, browser):
    form = {"username": "reporter", "email": "", "is_service": "on", "usable_password": "false"}
    admin.post(f"{USERS}add/", form)
    service = User.objects.get(username="reporter")
    assert service.is_service and not service.has_usable_password()
    service.set_password(PASSWORD)  # even so
    service.save()
    browser.post("/account/login/", {"login": "reporter", "password": PASSWORD})
    assert browser.get("/account/").status_code == 302
    assert admin.post(f"{KEYS}add/", {"user": service.pk, "name": "CI", **OPEN}).status_code == 200
    assert ApiKey.objects.get().user == service
    admin.post(f"{USERS}{service.pk}/change/", {"username": "reporter", "is_active": "on"})
    service.refresh_from_db()
    assert service.is_service, "it does not become a person"
