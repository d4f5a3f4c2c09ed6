from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import services
from accounts.models import ApiKey
from accounts.scopes import Scope
from tests.factories import holder_of


def test_a_key_names_its_user(grace):
    key, text = services.create_api_key(grace, "CI")
    assert text.startswith("aa_") and len(text) == 46
    assert holder_of(text) == grace
    assert text not in str(ApiKey.objects.values()) and text.startswith(key.prefix)


@pytest.mark.parametrize("spelling", ["Bearer {}", "bearer {}", "BEARER  {} "])
def test_every_spelling_of_the_header_is_one_way_in(grace, spelling):
    _, text = services.create_api_key(grace, "CI")
    key = services.key_for_authorization(spelling.format(text))
    assert key is not None and key.user == grace


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic {}", "{}", "Bearer aa_", "Bearer {}x", "Token {}"])
def test_anything_else_is_nobody(grace, header):
    _, text = services.create_api_key(grace, "CI")
    assert services.key_for_authorization(header.format(text)) is None


def test_a_revoked_key_is_closed_at_once(grace):
    key, text = services.create_api_key(grace, "CI")
    services.revoke_api_key(key)
    assert holder_of(text) is None


def test_an_expired_key_is_closed(grace):
    _, past = services.create_api_key(grace, "old", timezone.now() - timedelta(seconds=1))
    _, future = services.create_api_key(grace, "new", timezone.now() + timedelta(hours=1))
    assert holder_of(past) is None
    assert holder_of(future) == grace


def test_a_disabled_user_takes_the_keys_along(grace):
    _, text = services.create_api_key(grace, "CI")
    grace.is_active = False
    grace.save()
    assert holder_of(text) is None


def test_last_use_is_written_at_most_once_a_minute(grace, django_assert_num_queries):
    key, text = services.create_api_key(grace, "CI")

    def use():
        services.note_use(services.usable_key(text))

    with django_assert_num_queries(2):
        use()
    key.refresh_from_db()
    first = key.last_used_at
    assert first is not None
    with django_assert_num_queries(1):
        use()
    ApiKey.objects.update(last_used_at=first - timedelta(minutes=2))
    use()
    key.refresh_from_db()
    assert key.last_used_at is not None and key.last_used_at > first


@pytest.mark.parametrize(
    ("networks", "address", "admitted"),
    [
        ([], "203.0.113.9", True),
        (["10.0.0.0/8", "192.0.2.7"], "192.0.2.7", True),
        (["10.0.0.0/8", "192.0.2.7"], "192.0.2.8", False),
        (["10.1.2.3/8"], "10.9.9.9", True),
        (["10.0.0.0/8"], "::ffff:10.0.0.1", True),
        (["2001:db8::/32"], "2001:db8::1", True),
        (["::/0"], "10.0.0.1", False),
        (["10.0.0.0/8"], "", False),
        (["10.0.0.0/8"], "localhost", False),
    ],
)
def test_a_key_may_be_bound_to_addresses(networks, address, admitted):
    assert ApiKey(addresses=networks).admits(address) is admitted


def test_a_key_without_a_scope_does_not_use_its_users_rights(ada):
    def holder(*scopes):
        user = holder_of(services.create_api_key(ada, "CI", scopes=scopes)[1])
        assert user is not None
        return user

    assert ada.has_perm("conversations.view_all_runs") and ada.has_perm("accounts.approve")
    assert not holder("chat").has_perm("conversations.view_all_runs")
    assert not holder("chat", "admin:read").has_perm("accounts.approve")
    assert holder("admin:read").has_perm("conversations.view_all_runs")
    assert holder("approve").has_perm("accounts.approve")


def test_the_command_prints_a_working_key_last(grace, capsys):
    call_command("create_api_key", user="Grace", name="CI", expires=30)
    text = capsys.readouterr().out.splitlines()[-1]
    assert holder_of(text) == grace
    key = ApiKey.objects.get()
    assert key.name == "CI" and key.expires_at is not None
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)


def test_the_command_limits_a_key(grace, capsys):
    call_command("create_api_key", user="grace", name="CI", scopes="chat, runs:read", addresses="10.0.0.0/8")
    key = services.usable_key(capsys.readouterr().out.splitlines()[-1])
    assert key is not None and (key.scopes, key.addresses) == (["chat", "runs:read"], ["10.0.0.0/8"])
    call_command("create_api_key", user="grace", name="all")
    key = services.usable_key(capsys.readouterr().out.splitlines()[-1])
    assert key is not None and (key.scopes, key.addresses) == (Scope.values, [])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"user": "nobody", "name": "CI"}, "no active user named 'nobody'"),
        ({"user": "grace", "name": " "}, "--name"),
        ({"user": "grace", "name": "x" * 101}, "--name"),
        ({"user": "grace", "name": "CI", "expires": 0}, "--expires"),
        ({"user": "grace", "name": "CI", "expires": 10**9}, "--expires"),
        ({"user": "grace", "name": "CI", "scopes": "chat,root"}, "not: root"),
        ({"user": "grace", "name": "CI", "scopes": ""}, "not: none"),
        ({"user": "grace", "name": "CI", "addresses": "10.0.0.0/8,home"}, "“home” is no address"),
    ],
)
def test_the_command_says_what_is_wrong(grace, options, complaint):
    with pytest.raises(CommandError, match=complaint):
        call_command("create_api_key", **options)
    assert not ApiKey.objects.exists()
