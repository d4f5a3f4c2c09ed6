import re
import secrets
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.urls import reverse

from accounts.models import User
from tests.accounts.conftest import PASSWORD

LOGIN = "/account/login/"


def sign_in(browser: Any, login: str = "grace", password: str = PASSWORD, query: str = "") -> Any:
    return browser.post(LOGIN + query, {"login": login, "password": password})


def is_signed_in(browser: Any) -> bool:
    return "_auth_user_id" in browser.session


@pytest.mark.parametrize("login", ["grace", "GRACE", "grace@example.org", "Grace@Example.org"])
def test_by_name_or_address_in_any_case(browser, grace, login):
    assert sign_in(browser, login).status_code == 302
    assert is_signed_in(browser)


def test_unknown_name_and_wrong_password_read_the_same(browser, grace):
    unknown, wrong = sign_in(browser, "nobody"), sign_in(browser, "grace", "wrong password")
    assert wrong.context["form"].non_field_errors()
    assert unknown.context["form"].non_field_errors() == wrong.context["form"].non_field_errors()
    assert not is_signed_in(browser)


def test_sign_up_is_closed(browser, db):
    answers = {"username": "eve", "email": "eve@example.org", "password1": PASSWORD, "password2": PASSWORD}
    browser.post(reverse("account_signup"), answers)
    assert not User.objects.exists()


def test_a_disabled_user_is_out_with_the_next_request(browser, ada):
    sign_in(browser, "ada")
    assert browser.get("/admin/").status_code == 200
    User.objects.update(is_active=False)
    answer = browser.get("/admin/")
    assert answer.status_code == 302
    assert "login" in answer["Location"]


def test_a_disabled_user_cannot_sign_in(browser, grace):
    User.objects.update(is_active=False)
    sign_in(browser)
    assert not is_signed_in(browser)


def test_guessing_is_limited(browser, django_user_model, db):
    name = f"user{secrets.token_hex(4)}"  # the limit is counted by name, too, and outlives the test
    django_user_model.objects.create_user(name, password=PASSWORD)
    for _ in range(5):
        sign_in(browser, name, "wrong password")
    sign_in(browser, name)
    assert not is_signed_in(browser), "the right password comes too late"


def test_one_does_not_leave_the_site_by_signing_in(browser, grace):
    answer = sign_in(browser, query="?next=https://evil.example/")
    assert answer["Location"] == "/"


def test_the_admin_uses_the_same_sign_in(browser, db):
    answer = browser.get("/admin/login/?next=/admin/")
    assert answer.status_code == 302
    assert answer["Location"].startswith(LOGIN)


def test_people_without_rights_do_not_enter_the_admin(browser, grace):
    sign_in(browser)
    assert browser.get("/admin/", follow=True).status_code == 403


def test_a_forgotten_password_is_reset_by_mail(browser, grace):
    browser.post(reverse("account_reset_password"), {"email": "grace@example.org"})
    link = re.search(r"https?://[^/]+(/account/password/reset/key/\S+)", str(mail.outbox[0].body))
    assert link
    form = browser.get(link[1], follow=True)
    browser.post(form.request["PATH_INFO"], {"password1": "a brand new one", "password2": "a brand new one"})
    grace.refresh_from_db()
    assert grace.check_password("a brand new one")


def test_a_reset_for_an_unknown_address_looks_the_same(browser, grace):
    known = browser.post(reverse("account_reset_password"), {"email": "grace@example.org"})
    unknown = browser.post(reverse("account_reset_password"), {"email": "nobody@example.org"})
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])
    assert [message.to for message in mail.outbox] == [["grace@example.org"], ["nobody@example.org"]]
    assert "signup" not in str(mail.outbox[1].body), "sign-up is closed"


@pytest.mark.parametrize("same", [{"username": "Grace"}, {"username": "other", "email": "GRACE@example.org"}])
def test_a_name_and_an_address_mean_one_person(grace, same):
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create_user(**same)


def test_accounts_without_an_address_do_not_collide(db):
    User.objects.create_user("one")
    User.objects.create_user("two")


@pytest.mark.parametrize("page", ["email", "confirm-email", "password/set", "login/code"])
def test_pages_that_nobody_needs_are_not_there(browser, grace, page):
    browser.force_login(grace)
    assert browser.get(f"/account/{page}/").status_code == 404


def test_changing_the_password_keeps_this_session_and_ends_the_others(browser, client, grace):
    sign_in(browser)
    client.force_login(grace)
    new = {"oldpassword": PASSWORD, "password1": "a brand new one", "password2": "a brand new one"}
    assert browser.post(reverse("account_change_password"), new).status_code == 302
    assert browser.get(reverse("account_change_password")).status_code == 200
    assert client.get(reverse("account_change_password")).status_code == 302


def test_without_its_counters_sign_in_is_interrupted_in_words(browser, grace, settings):
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    answer = sign_in(browser)
    assert answer.status_code == 503
    assert answer["Retry-After"]
    assert not is_signed_in(browser)


@pytest.mark.parametrize("address", ["grace@example.org", "nobody@example.org"])
def test_a_mail_server_that_is_away_is_said_alike(browser, grace, settings, address):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    answer = browser.post(reverse("account_reset_password"), {"email": address})
    assert answer.status_code == 503 and "not available right now" in answer.content.decode()


def test_a_known_and_an_unknown_name_cost_the_same_work(browser, grace, monkeypatch):
    from django.contrib.auth.hashers import MD5PasswordHasher

    hashed: list[str] = []
    encode = MD5PasswordHasher.encode
    monkeypatch.setattr(
        MD5PasswordHasher, "encode", lambda self, *given: hashed.append(given[0]) or encode(self, *given)
    )
    counts = []
    for name in ("grace", "grace@example.org", "nobody", "nobody@example.org"):
        hashed.clear()
        sign_in(browser, name, "wrong password")
        counts.append(len(hashed))
    assert counts == [1, 1, 1, 1]
