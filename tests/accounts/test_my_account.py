import re

import pytest
from allauth.usersessions.models import UserSession
from django.test import Client

from accounts import services
from accounts.models import ApiKey, User
from tests.accounts.conftest import PASSWORD
from tests.factories import holder_of

PAGE = "/account/"


@pytest.fixture
def signed_in(browser, grace):
    browser.post("/account/login/", {"login": "grace", "password": PASSWORD})
    return browser


def profile(**changes: str) -> dict[str, str]:
    return {"first_name": "", "last_name": "", "language": "", "time_zone": "", **changes}


def test_language_and_time_zone_follow_the_person(signed_in, grace):
    signed_in.post(PAGE, profile(language="de", time_zone="Asia/Tokyo", first_name="Grace"))
    grace.refresh_from_db()
    assert (grace.language, grace.time_zone, grace.first_name) == ("de", "Asia/Tokyo", "Grace")
    key, _text = services.create_api_key(grace, "CI")
    ApiKey.objects.filter(pk=key.pk).update(last_used_at="2026-01-01T20:00:00Z")
    page = signed_in.get(PAGE)
    assert page["Content-Language"] == "de" and '<html lang="de"' in page.content.decode()
    assert "02.01.2026 05:00" in page.content.decode()
    other = Client(REMOTE_ADDR="fd00::90", HTTP_ACCEPT_LANGUAGE="en")
    assert other.get("/account/login/")["Content-Language"] == "en", "nobody else's pages change"


@pytest.mark.parametrize(
    "wrong", [{"language": "xx"}, {"time_zone": "Mars/Olympus"}, {"time_zone": "../../etc/passwd"}]
)
def test_a_wrong_choice_is_refused_in_words(signed_in, grace, wrong):
    page = signed_in.post(PAGE, profile(**wrong))
    assert page.context["profile"].errors
    grace.refresh_from_db()
    assert (grace.language, grace.time_zone) == ("", "")


def test_unknown_fields_change_nothing(signed_in, grace):
    signed_in.post(PAGE, profile(is_superuser="on", is_staff="on", username="root", email="x@example.org"))
    grace.refresh_from_db()
    assert not grace.is_superuser and grace.username == "grace" and grace.email == "grace@example.org"


def test_a_key_is_shown_once_and_revoked(signed_in, grace):
    answer = signed_in.post(
        f"{PAGE}keys/", {"name": "Nightly", "days": "30", "scopes": ["chat"], "addresses": "10.0.0.0/8, ::1"}
    )
    text = re.search(r"aa_[\w-]{43}", answer.content.decode())
    assert text and "no-store" in answer["Cache-Control"]
    assert holder_of(text[0]) == grace
    assert text[0] not in signed_in.get(PAGE).content.decode()
    key = ApiKey.objects.get()
    assert key.expires_at is not None
    assert (key.scopes, key.addresses) == (["chat"], ["10.0.0.0/8", "::1"])
    signed_in.post(f"{PAGE}keys/{key.pk}/revoke/")
    assert holder_of(text[0]) is None


def test_a_key_that_is_filled_in_wrongly_is_refused_in_words(signed_in):
    good = {"name": "x", "days": "30", "scopes": ["chat"], "addresses": ""}
    for wrong in ({"name": ""}, {"days": "31"}, {"scopes": []}, {"scopes": ["root"]}, {"addresses": "home"}):
        assert [*signed_in.post(f"{PAGE}keys/", good | wrong).context["key_form"].errors] == [*wrong]
    assert not ApiKey.objects.exists()


def test_somebody_elses_key_and_sign_in_are_not_there(signed_in, ada):
    key, _text = services.create_api_key(ada, "CI")
    other = Client(REMOTE_ADDR="fd00::91")
    other.post("/account/login/", {"login": "ada", "password": PASSWORD})
    theirs = UserSession.objects.get(user=ada)
    assert signed_in.post(f"{PAGE}keys/{key.pk}/revoke/").status_code == 404
    assert signed_in.post(f"{PAGE}sign-ins/{theirs.pk}/end/").status_code == 404
    assert other.get(PAGE).status_code == 200


def test_signing_out_another_browser(signed_in, grace):
    agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1"
    phone = Client(REMOTE_ADDR="fd00::92", HTTP_USER_AGENT=agent)
    phone.post("/account/login/", {"login": "grace", "password": PASSWORD})
    page = signed_in.get(PAGE).content.decode()
    assert "Safari · iPhone" in page and "this browser" in page
    row = UserSession.objects.get(user_agent=agent)
    signed_in.post(f"{PAGE}sign-ins/{row.pk}/end/")
    assert phone.get(PAGE).status_code == 302
    assert signed_in.get(PAGE).status_code == 200


def test_signing_out_everywhere_else(signed_in, grace):
    others = [Client(REMOTE_ADDR=f"fd00::{n}") for n in (93, 94)]
    for other in others:
        other.post("/account/login/", {"login": "grace", "password": PASSWORD})
    signed_in.post(f"{PAGE}sign-ins/end-others/")
    assert [other.get(PAGE).status_code for other in others] == [302, 302]
    assert signed_in.get(PAGE).status_code == 200


def test_the_page_takes_the_same_number_of_queries_for_many_rows(signed_in, grace, django_assert_max_num_queries):
    def fill(count: int) -> None:
        for number in range(count):
            services.create_api_key(grace, f"key {number}")
            UserSession.objects.create(user=grace, ip="::1", session_key=f"{number}-{count}", user_agent="x")

    fill(1)
    with django_assert_max_num_queries(30) as few:
        signed_in.get(PAGE)
    fill(30)
    with django_assert_max_num_queries(len(few)):
        signed_in.get(PAGE)


def test_disabled_people_lose_the_page_at_once(signed_in):
    User.objects.update(is_active=False)
    assert signed_in.get(PAGE).status_code == 302
