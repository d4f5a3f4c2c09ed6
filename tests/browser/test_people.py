"""People come in: by invitation, with a forgotten password, with a second factor, from elsewhere."""

import re
import secrets
import time
from collections.abc import Iterator

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, OpenPage
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.product import WEB, Product, eventually, free_port

PASSWORD = "correct-horse-battery"


def in_the_chat(page: Page) -> None:
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()


def code_of(secret: str, step: int = 0) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + step))


def sign_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("User name or e-mail").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_an_administrator_invites_and_the_invited_is_in_the_chat(product: Product, visit: OpenPage) -> None:
    admin = visit(product.person(staff=True), "/admin/accounts/invitation/add/")
    admin.get_by_label("Auditors").check()
    admin.get_by_role("button", name="Save", exact=True).click()
    link = admin.get_by_text(re.compile(r"http\S+/invitation/")).inner_text().strip()

    name = f"lin-{secrets.token_hex(4)}"
    page = visit(None, link.removeprefix(product.url), viewport=PHONE)
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Create my account").click()
    in_the_chat(page)
    groups = product.sql(
        "SELECT g.name FROM accounts_user u JOIN accounts_user_groups m ON m.user_id = u.id "
        "JOIN auth_group g ON g.id = m.group_id WHERE u.username = %s",
        name,
    )
    assert groups == [("Auditors",)]
    page.goto("/admin/")
    expect(page.locator("#content").get_by_role("heading", name="Record")).to_be_visible()


def test_a_forgotten_password_is_set_anew_by_the_mailed_link(product: Product, visit: OpenPage) -> None:
    person = product.person()
    page = visit(None, "/account/password/reset/")
    page.get_by_label("Email").fill(f"{person.username}@example.org")
    page.get_by_role("button", name="Send the link").click()
    expect(page.get_by_role("heading", name="Look into your mailbox")).to_be_visible()

    def mailed() -> str:
        _before, _to, mail = product.log("web").rpartition(f"To: {person.username}@example.org")
        found = re.search(r"/account/password/reset/key/\S+", mail)
        return found[0] if found else ""

    page.goto(eventually(mailed, "the link is in the printed mail"))
    page.get_by_label("New Password", exact=True).fill("a-brand-new-one")
    page.get_by_label("New Password (again)").fill("a-brand-new-one")
    page.get_by_role("button", name="Save password").click()
    expect(page.get_by_role("heading", name="Password saved")).to_be_visible()
    page.get_by_role("link", name="Sign in").click()
    sign_in(page, person.username, "a-brand-new-one")
    in_the_chat(page)


def test_a_second_factor_is_set_up_asked_for_and_replaced_by_a_recovery_code(product: Product, visit: OpenPage) -> None:
    person = product.person()
    page = visit(None, "/account/login/")
    sign_in(page, person.username, person.password)
    in_the_chat(page)
    page.goto("/account/")
    page.get_by_role("link", name="Set up").click()
    page.get_by_label("Password").fill(person.password)
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_alt_text(re.compile("QR code"))).to_be_visible()
    secret = page.locator(".secret").inner_text()
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Switch on").click()
    codes = page.locator(".codes li").all_inner_texts()
    assert len(codes) == 10
    page.get_by_role("link", name="I have kept them").click()
    expect(page.get_by_text("each sign-in asks for a code")).to_be_visible()

    for code in (code_of(secret, 1), codes[0]):
        other = visit(None, "/account/login/", viewport=PHONE)
        sign_in(other, person.username, person.password)
        other.get_by_label("Code").fill("000000")
        other.get_by_role("button", name="Sign in").click()
        expect(other.get_by_text("Incorrect code.")).to_be_visible()
        other.get_by_label("Code").fill(code)
        other.get_by_role("button", name="Sign in").click()
        in_the_chat(other)


def test_one_signs_out_another_browser(product: Product, visit: OpenPage) -> None:
    person = product.person()
    phone = visit(None, "/account/login/", viewport=PHONE)
    sign_in(phone, person.username, person.password)
    in_the_chat(phone)
    page = visit(None, "/account/login/?next=/account/")
    sign_in(page, person.username, person.password)
    expect(page.get_by_text("this browser")).to_be_visible()
    page.get_by_role("button", name="Sign out everywhere else").click()
    expect(page.get_by_text("All other browsers are signed out.")).to_be_visible()
    phone.goto("/")
    expect(phone.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_key_made_on_the_page_opens_the_api(product: Product, visit: OpenPage) -> None:
    page = visit(product.person(), "/account/")
    page.get_by_label("Name", exact=True).fill("Nightly")
    page.get_by_role("button", name="Make a key").click()
    key = page.locator(".secret").inner_text()
    answer = page.request.get("/api/v1/status", headers={"Authorization": f"Bearer {key}"})
    assert answer.ok


@pytest.fixture
def elsewhere(product: Product) -> Iterator[tuple[str, OidcProvider]]:
    """A web process that knows an issuer, and the issuer."""
    issuer, port = OidcProvider().start(), free_port()
    settings = {
        "OIDC_ISSUER": issuer.issuer,
        "OIDC_CLIENT_ID": CLIENT_ID,
        "OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "OIDC_NAME": "Example ID",
        "OIDC_SIGNUP": "1",
        "OIDC_GROUP_MAP": "seniors=Auditors",
    }
    product.spawn("web-oidc", [*WEB, "-p", str(port)], **settings)
    url = f"http://127.0.0.1:{port}"
    eventually(lambda: product.is_ready(url), "the web process is ready")
    yield url, issuer
    product.end("web-oidc")
    issuer.stop()


def test_somebody_signs_in_from_elsewhere_and_comes_with_groups(
    product: Product, visit: OpenPage, elsewhere: tuple[str, OidcProvider]
) -> None:
    url, issuer = elsewhere
    name = f"lin-{secrets.token_hex(4)}"
    issuer.tell_the_truth(sub=name, preferred_username=name, groups=["seniors"])
    page = visit(None, f"{url}/account/login/")
    page.get_by_role("button", name="Continue with Example ID").click()
    in_the_chat(page)
    assert page.url == f"{url}/"
    page.goto(f"{url}/admin/")
    expect(page.locator("#content").get_by_role("heading", name="Record")).to_be_visible()
    page.goto(f"{url}/account/")
    expect(page.get_by_text("Connected since")).to_be_visible()


def test_the_health_page_sees_the_websocket_get_through(product: Product, visit: OpenPage) -> None:
    page = visit(product.person(staff=True), "/admin/health/")
    expect(page.locator("#websocket")).to_have_attribute("data-state", "ok")
    expect(page.get_by_text("It reaches the site from your browser.")).to_be_visible()


def test_the_health_page_says_when_a_websocket_is_blocked(product: Product, visit: OpenPage) -> None:
    page = visit(product.person(staff=True), "/account/")
    page.route_web_socket("**/ws/", lambda route: route.close())
    page.goto("/admin/health/")
    expect(page.get_by_text("It does not get through")).to_be_visible()
