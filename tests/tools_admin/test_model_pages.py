"""The admin's pages of models: checking a provider, trying a route."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from pydantic import SecretStr

from tools_admin.checks import CHECK_SECONDS, add_models
from tools_admin.models import LanguageModel, Provider, Route, RouteEntry

pytestmark = pytest.mark.django_db
ROOT = "/admin/tools_admin/"
LIST = [{"id": "gpt", "context_size": 64_000}, {"id": "embed-large", "context_size": None}]


def found(**more: Any) -> dict[str, Any]:
    return {"state": "done", "at": timezone.now().isoformat(), "seconds": 0.2, **more}


@pytest.fixture
def provider() -> Provider:
    return Provider.objects.create(
        name="Acme", base_url="https://api.example.org/v1", api_key=SecretStr("sk-1"), last_check=found(models=LIST)
    )


@pytest.fixture
def check_page(provider) -> str:
    return reverse("admin:tools_admin_provider_check", args=[provider.pk])


def text_of(answer) -> str:
    return " ".join(answer.content.decode().split())


def test_a_new_endpoint_needs_its_kind_and_a_key(admin_client):
    form = {"preset": "mistral", "new_api_key": " sk-2 ", "timeout": "60", "enabled": "on", "extra_headers": "{}"}
    answer = admin_client.post(f"{ROOT}provider/add/", {**form, "extra_body": "{}"})
    made = Provider.objects.get()
    assert (made.name, made.base_url) == ("Mistral", "https://api.mistral.ai/v1")
    assert made.api_key.get_secret_value() == "sk-2"
    assert answer["Location"] == reverse("admin:tools_admin_provider_check", args=[made.pk])
    assert made.last_check["state"] == "running"
    admin_client.post(f"{ROOT}provider/add/", {**form, "extra_body": "{}"})
    assert set(Provider.objects.values_list("name", flat=True)) == {"Mistral", "Mistral 2"}


@pytest.mark.parametrize(("preset", "why"), [("azure", "name of your resource"), ("other", "Enter the address")])
def test_an_address_that_nobody_can_guess_is_asked_for(admin_client, preset, why):
    form = {"preset": preset, "timeout": "60", "extra_headers": "{}", "extra_body": "{}"}
    answer = admin_client.post(f"{ROOT}provider/add/", form)
    assert why in answer.context["adminform"].form.errors["base_url"][0]


@pytest.mark.parametrize("address", ["http://169.254.169.254/v1", "http://[::ffff:127.0.0.1]/v1", "http://0.0.0.0/v1"])
def test_addresses_at_which_no_endpoint_lives_are_refused(admin_client, address):
    form = {"preset": "other", "base_url": address, "timeout": "60", "extra_headers": "{}", "extra_body": "{}"}
    answer = admin_client.post(f"{ROOT}provider/add/", form)
    assert "base_url" in answer.context["adminform"].form.errors


@pytest.mark.parametrize(
    "headers",
    [
        '{"Authorization": "Bearer sk-1"}',
        '{"X-Api-Key": "sk-1"}',
        '{"Host": "x"}',
        '{"a b": "c"}',
        '{"X-A": "b\\nc"}',
        '["x"]',
    ],
)
def test_headers_hold_no_secret_and_nothing_that_breaks_a_request(admin_client, headers):
    form = {"preset": "openai", "timeout": "60", "extra_headers": headers, "extra_body": "{}"}
    answer = admin_client.post(f"{ROOT}provider/add/", form)
    assert "extra_headers" in answer.context["adminform"].form.errors


def test_the_page_offers_what_the_endpoint_has(admin_client, check_page):
    page = text_of(admin_client.get(check_page))
    assert "It offers 2 models." in page and "64,000 tokens" in page and 'http-equiv="refresh"' not in page


def test_chosen_models_are_added_with_what_is_known_and_the_first_answers_by_default(
    admin_client, provider, check_page
):
    admin_client.post(check_page, {"action": "add", "name": ["embed-large", "gpt"], "other": "hidden"})
    rows = {model.name: model for model in provider.models.all()}
    assert {name: (model.kind, model.context_size) for name, model in rows.items()} == {
        "embed-large": ("embedding", 128_000),
        "gpt": ("chat", 64_000),
        "hidden": ("chat", 128_000),
    }
    assert [name for name, model in rows.items() if model.is_default] == ["gpt"]
    assert all(model.last_check["state"] == "running" for model in rows.values())
    assert 'http-equiv="refresh"' in text_of(admin_client.get(check_page))


def test_a_default_that_a_person_chose_stays(provider):
    own = LanguageModel.objects.create(provider=provider, name="own", is_default=True)
    add_models(provider, ["gpt"])
    assert list(LanguageModel.objects.filter(is_default=True)) == [own]


def test_adding_twice_or_nothing_changes_nothing(admin_client, provider, check_page):
    add_models(provider, ["gpt"])
    for form in ({"name": ["gpt"]}, {"other": " "}, {"other": "x" * 201}, {}):
        admin_client.post(check_page, {"action": "add", **form})
    assert provider.models.count() == 1


def test_a_locked_provider_can_be_checked_and_takes_no_models(admin_client):
    locked = Provider.objects.create(name="Env", base_url="https://y.example/v1", source="environment")
    page = reverse("admin:tools_admin_provider_check", args=[locked.pk])
    admin_client.post(page, {"action": "add", "other": "gpt"})
    assert not locked.models.exists()
    admin_client.post(page, {"action": "list"})
    locked.refresh_from_db()
    assert locked.last_check["state"] == "running"


def test_a_check_that_no_worker_finishes_does_not_wait_for_ever(admin_client, provider, check_page):
    asked = timezone.now() - timedelta(seconds=CHECK_SECONDS + 1)
    Provider.objects.update(last_check={"state": "running", "asked_at": asked.isoformat()})
    page = text_of(admin_client.get(check_page))
    assert "no worker has finished the check" in page and 'http-equiv="refresh"' not in page


def test_the_matrix_says_what_works_and_the_exact_error_of_what_does_not(admin_client, provider, check_page):
    measured = {"vision": {"ok": False, "seconds": 1, "said": "HTTP 400: <b>no</b> images"}}
    LanguageModel.objects.create(provider=provider, name="gpt", last_check=found(abilities=measured))
    LanguageModel.objects.create(provider=provider, name="gone", last_check=found(error="HTTP 404: no such model"))
    page = text_of(admin_client.get(check_page))
    assert "HTTP 400: &lt;b&gt;no&lt;/b&gt; images" in page and "HTTP 404: no such model" in page


def test_a_model_of_another_provider_is_not_checked(admin_client, check_page):
    other = Provider.objects.create(name="Other", base_url="https://z.example/v1")
    model = LanguageModel.objects.create(provider=other, name="gpt")
    for number in (str(model.pk), "x", "9" * 30, ""):
        assert admin_client.post(check_page, {"action": "check", "model": number}).status_code == 302
    model.refresh_from_db()
    assert model.last_check == {}


def test_whoever_may_not_change_providers_does_not_check_them(client, django_user_model, check_page):
    client.force_login(django_user_model.objects.create_user("staff", is_staff=True))
    assert client.get(check_page).status_code == 403
    assert client.post(check_page, {"action": "list"}).status_code == 403


def test_prices_are_written_in_money_and_kept_in_micro_units(admin_client, provider):
    model = LanguageModel.objects.create(provider=provider, name="gpt")
    form = {"provider": provider.pk, "name": "gpt", "kind": "chat", "context_size": "32000", "max_output_tokens": "100"}
    prices = {"input_price": "2.50", "cached_price": "0.000001", "output_price": "", "reasoning_price": ""}
    url = f"{ROOT}languagemodel/{model.pk}/change/"
    admin_client.post(url, {**form, **prices, "extra_body": "{}"})
    model.refresh_from_db()
    assert model.prices == (2_500_000, 1, 0, 0)
    shown = admin_client.get(url).context["adminform"].form
    assert 'value="2.5"' in str(shown["input_price"]) and 'value="0.000001"' in str(shown["cached_price"])


# Routes ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def route(provider) -> Route:
    route = Route.objects.get(name="general")
    for position, name in enumerate(["large", "small"]):
        model = LanguageModel.objects.create(provider=provider, name=name, tool_call=name == "large")
        RouteEntry.objects.create(route=route, model=model, position=position)
    return route


def attempt(client, route: Route, **values):
    data = {"question": "What sold best?", "person": "admin", "tools": "on", **values}
    return client.get(reverse("admin:tools_admin_route_try", args=[route.pk]), data)


def test_a_route_is_tried_with_a_sample(admin_client, route):
    page = text_of(attempt(admin_client, route))
    assert "large would answer" in page and "because it is the first model that fits on the route general." in page
    assert "stands in when the ones before it do not answer" in page
    assert "native tool calls" not in page.split("A run may use")[1].split("</p>")[0]


def test_trying_says_why_a_model_is_passed_over(admin_client, route):
    RouteEntry.objects.filter(position=0).update(tools="without", max_tokens=10)
    page = text_of(attempt(admin_client, route))
    assert "small would answer" in page and "is passed over: only for runs without tools" in page
    page = text_of(attempt(admin_client, route, tools="", tokens="5000"))
    assert "is passed over: only up to 10 tokens" in page


def test_trying_a_route_without_a_fitting_model_names_the_one_that_answers_instead(admin_client, route, provider):
    RouteEntry.objects.update(images="with")
    LanguageModel.objects.create(provider=provider, name="spare", is_default=True)
    page = text_of(attempt(admin_client, route))
    assert "spare would answer" in page and "no model of the route fits" in page


@pytest.mark.parametrize("values", [{"person": "nobody"}, {"tokens": "-1"}, {"at": "late"}, {"question": ""}])
def test_a_sample_that_makes_no_sense_is_explained(admin_client, route, values):
    answer = attempt(admin_client, route, **values)
    assert answer.status_code == 200 and "choice" not in answer.context


def test_without_any_model_the_page_says_what_to_do(admin_client, route):
    LanguageModel.objects.all().delete()
    assert "No model is connected" in text_of(attempt(admin_client, route))


def test_the_products_own_roles_stay(admin_client, route):
    assert admin_client.post(f"{ROOT}route/{route.pk}/delete/", {"post": "yes"}).status_code == 403
    own = Route.objects.create(name="reports")
    admin_client.post(f"{ROOT}route/{own.pk}/delete/", {"post": "yes"})
    assert not Route.objects.filter(name="reports").exists()
