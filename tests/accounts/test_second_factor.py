import re
import secrets
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value

from accounts.models import User
from tests.accounts.conftest import PASSWORD

ACTIVATE = "/account/second-factor/totp/activate/"


@pytest.fixture
def lin(db):
    """Sign-in limits are counted by name and outlive a test: a name of its own for each."""
    return User.objects.create_user(f"lin{secrets.token_hex(4)}", f"{secrets.token_hex(4)}@example.org", PASSWORD)


def sign_in(browser, user):
    return browser.post("/account/login/", {"login": user.username, "password": PASSWORD})


def code_of(secret: str, step: int = 0) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + step))


def switch_on(browser, user) -> tuple[str, list[str]]:
    """The key of the app, and the recovery codes."""
    sign_in(browser, user)
    browser.post(f"/account/reauthenticate/?next={ACTIVATE}", {"password": PASSWORD})
    secret = browser.get(ACTIVATE).context["form"].secret
    shown = browser.post(ACTIVATE, {"code": code_of(secret)}, follow=True)
    return secret, re.findall(r"<li>(\d{8}|\d{4} ?\d{4})</li>", shown.content.decode())


def is_signed_in(browser) -> bool:
    return "_auth_user_id" in browser.session


def test_a_password_alone_no_longer_opens_the_account(browser, client, lin):
    secret, _codes = switch_on(browser, lin)
    browser.logout()
    answer = sign_in(browser, lin)
    assert "/second-factor/authenticate/" in answer["Location"] and not is_signed_in(browser)
    assert browser.get("/")["Location"].startswith("/account/login/")
    browser.post("/account/second-factor/authenticate/", {"code": "000000"})
    assert not is_signed_in(browser)
    browser.post("/account/second-factor/authenticate/", {"code": code_of(secret, 1)})
    assert is_signed_in(browser)


def test_a_code_works_once(browser, client, lin):
    secret, _codes = switch_on(browser, lin)
    code = code_of(secret, 1)
    for expected in (True, False):
        browser.logout()
        sign_in(browser, lin)
        browser.post("/account/second-factor/authenticate/", {"code": code})
        assert is_signed_in(browser) is expected


def test_each_recovery_code_signs_in_once_and_is_shown_once(browser, lin):
    _secret, codes = switch_on(browser, lin)
    assert len(codes) == 10
    assert codes[0] not in browser.get("/account/second-factor/recovery-codes/").content.decode()
    for expected in (True, False):
        browser.logout()
        sign_in(browser, lin)
        browser.post("/account/second-factor/authenticate/", {"code": codes[0]})
        assert is_signed_in(browser) is expected


def test_guessing_codes_is_limited(browser, lin):
    secret, _codes = switch_on(browser, lin)
    browser.logout()
    sign_in(browser, lin)
    for _ in range(6):
        browser.post("/account/second-factor/authenticate/", {"code": "000000"})
    browser.post("/account/second-factor/authenticate/", {"code": code_of(secret, 1)})
    assert not is_signed_in(browser), "the right code comes too late"


def test_the_key_is_stored_encrypted_and_not_shown_again(browser, lin):
    secret, _codes = switch_on(browser, lin)
    assert secret not in str(list(Authenticator.objects.values()))
    assert secret not in str(dict(browser.session.items()))
    assert secret not in browser.get("/account/").content.decode()
    assert browser.get(ACTIVATE).status_code == 302


def test_switching_off_asks_for_a_fresh_proof(browser, lin):
    switch_on(browser, lin)
    session = browser.session
    for method in session["account_authentication_methods"]:
        method["at"] = 0
    session.save()
    answer = browser.post("/account/second-factor/totp/deactivate/")
    assert "reauthenticate" in answer["Location"]
    assert Authenticator.objects.filter(user=lin).exists()


def test_an_administrator_removes_a_lost_second_factor(browser, client, lin, ada):
    switch_on(browser, lin)
    client.force_login(ada)
    page = client.post(
        "/admin/accounts/user/", {"action": "remove_second_factor", "_selected_action": [lin.pk]}, follow=True
    )
    assert page.status_code == 200
    assert not Authenticator.objects.filter(user=lin).exists()


def test_a_password_reset_does_not_go_around_the_second_factor(browser, lin):
    switch_on(browser, lin)
    browser.logout()
    from django.core import mail

    browser.post("/account/password/reset/", {"email": lin.email})
    link = re.search(r"https?://[^/]+(/account/password/reset/key/\S+)", str(mail.outbox[-1].body))
    form = browser.get(link[1], follow=True)
    browser.post(form.request["PATH_INFO"], {"password1": "a brand new one", "password2": "a brand new one"})
    assert not is_signed_in(browser)
    browser.post("/account/login/", {"login": lin.username, "password": "a brand new one"})
    assert not is_signed_in(browser)
