"""Sign-in elsewhere: who gets in, as whom, and what an issuer that lies gets."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth.models import Group
from django.test import Client

from accounts import invitations
from accounts.models import User
from tests.accounts.conftest import PASSWORD
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider

START = "/account/oidc/sso/login/"


@pytest.fixture(scope="module")
def running_issuer() -> Iterator[OidcProvider]:
    provider = OidcProvider().start()
    yield provider
    provider.stop()


@pytest.fixture
def issuer(running_issuer: OidcProvider, settings: Any, db: None) -> OidcProvider:
    running_issuer.tell_the_truth()
    settings.OIDC_ISSUER = running_issuer.issuer
    settings.OIDC_SIGNUP = True
    connect = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]
    app = {
        "provider_id": "sso",
        "name": "Example ID",
        "client_id": CLIENT_ID,
        "secret": CLIENT_SECRET,
        "settings": {"server_url": running_issuer.issuer, "scope": ["openid", "profile", "email"]},
    }
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {**connect, "APPS": [app]}}
    return running_issuer


def leave(browser: Client, process: str = "") -> str:
    """Presses the button; gives the issuer's address that the page leads to."""
    page = browser.post(START + (f"?process={process}" if process else ""))
    address = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page.content.decode())
    assert address, page.content.decode()
    return address[1].replace("&amp;", "&")


def come_back(browser: Client, issuer: OidcProvider, address: str) -> Any:
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    back = urlsplit(issuer.authorize(query))
    return browser.get(f"{back.path}?{back.query}")


def sign_in(browser: Client, issuer: OidcProvider, process: str = "") -> Any:
    return come_back(browser, issuer, leave(browser, process))


def signed_in(browser: Client) -> User | None:
    return User.objects.filter(pk=browser.session.get("_auth_user_id")).first()


def test_somebody_new_gets_an_account_and_comes_back_to_it(browser: Client, issuer: OidcProvider) -> None:
    assert sign_in(browser, issuer)["Location"] == "/"
    user = signed_in(browser)
    assert user and (user.username, user.first_name, user.last_name) == ("lin", "Lin", "Chen")
    assert not user.has_usable_password()
    other = Client(REMOTE_ADDR="fd00::77")
    sign_in(other, issuer)
    assert signed_in(other) == user and User.objects.count() == 1


def test_without_sign_up_somebody_unknown_gets_nothing(browser: Client, issuer: OidcProvider, settings: Any) -> None:
    settings.OIDC_SIGNUP = False
    assert sign_in(browser, issuer).status_code == 403
    assert signed_in(browser) is None and not User.objects.exists()


def test_an_invitation_lets_somebody_unknown_in_with_its_groups(
    browser: Client, issuer: OidcProvider, settings: Any, ada: User
) -> None:
    settings.OIDC_SIGNUP = False
    team = Group.objects.create(name="Team")
    _invitation, link = invitations.invite(ada, [team], "lin@example.org")
    browser.get(link)
    sign_in(browser, issuer)
    user = signed_in(browser)
    assert user and user.email == "lin@example.org" and list(user.groups.all()) == [team]
    assert browser.get(link).status_code == 404, "it is used up"


@pytest.mark.parametrize("verified", [True, False])
def test_an_address_never_links_to_an_account(
    browser: Client, issuer: OidcProvider, grace: User, verified: bool
) -> None:
    issuer.tell_the_truth(email="grace@example.org", email_verified=verified)
    sign_in(browser, issuer)
    assert signed_in(browser) != grace
    assert not SocialAccount.objects.filter(user=grace).exists()
    if not verified:
        made = User.objects.get(username="lin")
        assert made.email == "", "an unverified address is nobody's"


def test_linking_needs_the_signed_in_user(browser: Client, issuer: OidcProvider, grace: User) -> None:
    browser.post("/account/login/", {"login": "grace", "password": PASSWORD})
    answer = sign_in(browser, issuer, "connect")
    assert answer["Location"].startswith("/account/reauthenticate/") and not SocialAccount.objects.exists()
    assert browser.post(answer["Location"], {"password": PASSWORD})["Location"] == "/account/"
    assert SocialAccount.objects.get(uid="abc-123").user == grace
    other = Client(REMOTE_ADDR="fd00::78")
    sign_in(other, issuer)
    assert signed_in(other) == grace


def test_connecting_without_being_signed_in_links_nothing(browser: Client, issuer: OidcProvider, grace: User) -> None:
    sign_in(browser, issuer, "connect")
    assert signed_in(browser) is None and not SocialAccount.objects.exists()


def test_mapped_groups_follow_the_issuer_and_others_stay(browser: Client, issuer: OidcProvider, settings: Any) -> None:
    settings.OIDC_GROUP_MAP = {"eng": "Engineering", "boss": "Administrators"}
    engineering, own = Group.objects.create(name="Engineering"), Group.objects.create(name="Chess")
    issuer.tell_the_truth(groups=["eng", "unknown"])
    sign_in(browser, issuer)
    user = signed_in(browser)
    assert user and list(user.groups.all()) == [engineering]
    user.groups.add(own)
    issuer.tell_the_truth(groups=["boss"])
    sign_in(browser, issuer)
    assert {group.name for group in user.groups.all()} == {"Administrators", "Chess"}


def test_a_disabled_account_stays_closed(browser: Client, issuer: OidcProvider) -> None:
    sign_in(browser, issuer)
    User.objects.update(is_active=False)
    other = Client(REMOTE_ADDR="fd00::79")
    sign_in(other, issuer)
    assert signed_in(other) is None


STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)

LIES: dict[str, dict[str, Any]] = {
    "another issuer": {"lies": {"iss": "https://evil.example"}},
    "another audience": {"lies": {"aud": "somebody-else"}},
    "another sign-in's nonce": {"lies": {"nonce": "0" * 64}},
    "no nonce": {"lies": {"nonce": ""}},
    "another client's token": {"lies": {"azp": "somebody-else"}},
    "an expired token": {"lies": {"exp": 1}},
    "a stranger's signature": {"signing_key": STRANGER},
    "a symmetric signature": {"signing_key": "x" * 64, "algorithm": "HS256"},
    "no signature": {"signing_key": None, "algorithm": "none"},
    "user info of somebody else": {"info": {"sub": "root"}},
    "no subject": {"lies": {"sub": None}},
    "a configuration of another issuer": {"configuration": {"issuer": "https://evil.example"}},
    "keys that are not there": {"configuration": {"jwks_uri": "http://127.0.0.1:1/jwks"}},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_signs_nobody_in(browser: Client, issuer: OidcProvider, lie: str) -> None:
    address = leave(browser)
    for name, value in LIES[lie].items():
        setattr(issuer, name, value)
    assert come_back(browser, issuer, address).status_code == 401
    assert signed_in(browser) is None and not User.objects.exists()


def test_an_answer_for_another_browser_signs_nobody_in(browser: Client, issuer: OidcProvider) -> None:
    address = leave(browser)
    other = Client(REMOTE_ADDR="fd00::80")
    leave(other)
    assert come_back(other, issuer, address).status_code == 401
    assert signed_in(other) is None


def test_an_issuer_that_is_away_is_said_in_words(browser: Client, issuer: OidcProvider, settings: Any) -> None:
    app = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]
    app["settings"]["server_url"] = "http://127.0.0.1:1"
    page = browser.post(START)
    assert page.status_code == 401
    assert "sign-in elsewhere failed" in page.content.decode()


def test_scope_and_parameters_do_not_come_from_the_address(browser: Client, issuer: OidcProvider) -> None:
    page = browser.post(f"{START}?scope=admin&auth_params=nonce%3Dmine&next=https://evil.example/").content.decode()
    assert "admin" not in page.split("refresh")[1].split(">")[0]
    assert "nonce=mine" not in page


def test_the_button_is_there_only_with_an_issuer(browser: Client, issuer: OidcProvider, settings: Any) -> None:
    assert "Continue with Example ID" in browser.get("/account/login/").content.decode()
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": []}}
    assert "Continue with" not in browser.get("/account/login/").content.decode()
    assert browser.post(START).status_code == 404
