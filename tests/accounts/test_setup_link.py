import pytest

from accounts import services
from accounts.errors import SetupLinkInvalid
from accounts.models import SetupLink, User
from tests.accounts.conftest import PASSWORD
from tests.at_once import at_once

ANSWERS = {"username": "ada", "email": "ada@example.org", "password1": PASSWORD, "password2": PASSWORD}


def token_of(path: str | None) -> str:
    assert path is not None
    return path.removeprefix("/setup/").removesuffix("/")


@pytest.mark.django_db
def test_no_link_while_an_administrator_is_active(ada):
    assert services.setup_link() is None


@pytest.mark.django_db
def test_a_link_is_made_when_the_only_administrator_is_disabled(ada):
    User.objects.update(is_active=False)
    assert services.setup_link() is not None


@pytest.mark.django_db
def test_the_link_makes_an_administrator_once():
    token = token_of(services.setup_link())
    user = services.redeem_setup_link(token, "ada", PASSWORD, "ada@example.org")
    assert user.is_superuser and user.is_staff and user.check_password(PASSWORD)
    with pytest.raises(SetupLinkInvalid):
        services.redeem_setup_link(token, "eve", PASSWORD)
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_a_newer_link_supersedes_the_unused_one():
    old, new = token_of(services.setup_link()), token_of(services.setup_link())
    with pytest.raises(SetupLinkInvalid):
        services.redeem_setup_link(old, "eve", PASSWORD)
    assert services.redeem_setup_link(new, "ada", PASSWORD).is_superuser


@pytest.mark.django_db
def test_an_administrator_made_meanwhile_closes_the_link(grace):
    token = token_of(services.setup_link())
    services.ensure_admin("ada", PASSWORD)
    assert not services.is_setup_link_open(token)
    with pytest.raises(SetupLinkInvalid):
        services.redeem_setup_link(token, "eve", PASSWORD)


@pytest.mark.django_db
def test_only_the_fingerprint_is_stored():
    token = token_of(services.setup_link())
    assert token not in str(SetupLink.objects.values())


@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_redemptions_one_succeeds():
    token = token_of(services.setup_link())
    outcomes = at_once(4, lambda number: services.redeem_setup_link(token, f"user{number}", PASSWORD))
    assert sum(isinstance(outcome, User) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, SetupLinkInvalid) for outcome in outcomes) == 3
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_the_page_makes_the_account_and_signs_in(browser):
    path = services.setup_link()
    page = browser.get(path)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    assert page["Referrer-Policy"] == "same-origin"  # stricter, and a browser sends no origin with the form
    assert browser.get(path).status_code == 200, "looking does not use the link up"

    answer = browser.post(path, ANSWERS)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert browser.get("/admin/").status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", [{"password2": "other"}, {"password1": "ada", "password2": "ada"}, {"username": ""}])
def test_a_mistake_in_the_form_leaves_the_link_open(browser, wrong):
    path = services.setup_link()
    answer = browser.post(path, {**ANSWERS, **wrong})
    assert answer.status_code == 200
    assert answer.context["form"].errors
    assert not User.objects.exists()
    assert browser.post(path, ANSWERS).status_code == 302


@pytest.mark.django_db
def test_used_and_invented_links_get_the_same_answer(browser):
    path = services.setup_link()
    browser.post(path, ANSWERS)
    browser.logout()
    used, invented = browser.get(path), browser.get("/setup/abc/")
    assert used.status_code == invented.status_code == 404
    assert used.content == invented.content
    assert "no-store" in used["Cache-Control"]
    assert browser.post(path, {**ANSWERS, "username": "eve"}).status_code == 404
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_the_named_administrator_is_made_once_and_then_left_alone():
    first = services.ensure_admin("ada", PASSWORD)
    first.set_password("changed by ada herself")
    first.is_superuser = False
    first.save()
    again = services.ensure_admin("Ada", PASSWORD)
    assert again.pk == first.pk
    assert again.check_password("changed by ada herself")
    assert not again.is_superuser


@pytest.mark.django_db
@pytest.mark.parametrize(("username", "password"), [("", PASSWORD), ("ada", "")])
def test_half_an_administrator_is_refused(username, password):
    with pytest.raises(ValueError, match="both"):
        services.ensure_admin(username, password)
