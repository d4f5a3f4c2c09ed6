from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import services
from accounts.models import ApiKey


def test_a_key_names_its_user(grace):
    key, text = services.create_api_key(grace, "CI")
    assert text.startswith("aa_") and len(text) == 46
    assert services.user_for_key(text) == grace
    assert text not in str(ApiKey.objects.values()) and text.startswith(key.prefix)


@pytest.mark.parametrize("spelling", ["Bearer {}", "bearer {}", "BEARER  {} "])
def test_every_spelling_of_the_header_is_one_way_in(grace, spelling):
    _, text = services.create_api_key(grace, "CI")
    assert services.user_for_authorization(spelling.format(text)) == grace


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic {}", "{}", "Bearer aa_", "Bearer {}x", "Token {}"])
def test_anything_else_is_nobody(grace, header):
    _, text = services.create_api_key(grace, "CI")
    assert services.user_for_authorization(header.format(text)) is None


def test_a_revoked_key_is_closed_at_once(grace):
    key, text = services.create_api_key(grace, "CI")
    services.revoke_api_key(key)
    assert services.user_for_key(text) is None


def test_an_expired_key_is_closed(grace):
    _, past = services.create_api_key(grace, "old", timezone.now() - timedelta(seconds=1))
    _, future = services.create_api_key(grace, "new", timezone.now() + timedelta(hours=1))
    assert services.user_for_key(past) is None
    assert services.user_for_key(future) == grace


def test_a_disabled_user_takes_the_keys_along(grace):
    _, text = services.create_api_key(grace, "CI")
    grace.is_active = False
    grace.save()
    assert services.user_for_key(text) is None


def test_last_use_is_written_at_most_once_a_minute(grace, django_assert_num_queries):
    key, text = services.create_api_key(grace, "CI")
    with django_assert_num_queries(2):
        services.user_for_key(text)
    key.refresh_from_db()
    first = key.last_used_at
    assert first is not None
    with django_assert_num_queries(1):
        services.user_for_key(text)
    ApiKey.objects.update(last_used_at=first - timedelta(minutes=2))
    services.user_for_key(text)
    key.refresh_from_db()
    assert key.last_used_at is not None and key.last_used_at > first


def test_the_command_prints_a_working_key_last(grace, capsys):
    call_command("create_api_key", user="Grace", name="CI", expires=30)
    text = capsys.readouterr().out.splitlines()[-1]
    assert services.user_for_key(text) == grace
    key = ApiKey.objects.get()
    assert key.name == "CI" and key.expires_at is not None
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"user": "nobody", "name": "CI"}, "no active user named 'nobody'"),
        ({"user": "grace", "name": " "}, "--name"),
        ({"user": "grace", "name": "x" * 101}, "--name"),
        ({"user": "grace", "name": "CI", "expires": 0}, "--expires"),
        ({"user": "grace", "name": "CI", "expires": 10**9}, "--expires"),
    ],
)
def test_the_command_says_what_is_wrong(grace, options, complaint):
    with pytest.raises(CommandError, match=complaint):
        call_command("create_api_key", **options)
    assert not ApiKey.objects.exists()
