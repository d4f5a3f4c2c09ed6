import pytest
from django.contrib.auth.models import AnonymousUser
from django.middleware.csrf import get_token
from django.test import RequestFactory
from ninja.errors import HttpError

from accounts import services
from accounts.auth import ApiAuth

auth = ApiAuth()


def request(method: str = "post", user=None, **headers):
    made = getattr(RequestFactory(enforce_csrf_checks=True), method)("/api/v1/anything", headers=headers)
    made.user = user or AnonymousUser()
    return made


def test_a_key_needs_no_csrf_token(grace):
    _, text = services.create_api_key(grace, "CI")
    made = request(Authorization=f"Bearer {text}")
    assert auth(made) == grace
    assert made.user == grace


def test_a_dead_key_does_not_fall_back_to_the_cookie(ada, grace):
    key, text = services.create_api_key(grace, "CI")
    services.revoke_api_key(key)
    assert auth(request("get", user=ada, Authorization=f"Bearer {text}")) is None


def test_a_session_may_read(grace):
    assert auth(request("get", user=grace)) == grace


def test_a_session_may_not_write_without_the_csrf_token(grace):
    with pytest.raises(HttpError) as refused:
        auth(request(user=grace))
    assert refused.value.status_code == 403


def test_a_session_may_write_with_the_csrf_token(grace):
    made = request(user=grace)
    token = get_token(made)
    made.COOKIES["csrftoken"] = made.META["CSRF_COOKIE"]
    made.META["HTTP_X_CSRFTOKEN"] = token
    assert auth(made) == grace


def test_nobody_is_nobody(db):
    assert auth(request("get")) is None
