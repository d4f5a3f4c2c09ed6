import json

import pytest
from pydantic import SecretStr

from tools_admin.models import Agent, Connector, LanguageModel, Provider, Route, RouteEntry, Tool

pytestmark = pytest.mark.django_db

ROOT = "/admin/tools_admin/"


@pytest.fixture
def provider() -> Provider:
    return Provider.objects.create(name="Acme", base_url="https://api.example.org/v1", api_key=SecretStr("sk-1"))


@pytest.fixture
def locked() -> Provider:
    made = Provider.objects.create(
        name="Env", base_url="https://env.example.org/v1", api_key=SecretStr("sk-2"), source="environment"
    )
    LanguageModel.objects.create(provider=made, name="gpt-env")
    return made


def provider_form(**changes) -> dict[str, str]:
    return {
        "preset": "other",
        "name": "Acme",
        "extra_headers": "{}",
        "extra_body": "{}",
        "base_url": "https://api.example.org/v1",
        "new_api_key": "",
        "enabled": "on",
        "timeout": "120",
        **changes,
    }


def key_of(provider: Provider) -> str:
    provider.refresh_from_db()
    return provider.api_key.get_secret_value()


def test_a_provider_is_made_with_its_key(admin_client):
    admin_client.post(f"{ROOT}provider/add/", provider_form(new_api_key="sk-new"))
    assert key_of(Provider.objects.get()) == "sk-new"


def test_an_empty_key_field_keeps_the_key(admin_client, provider):
    admin_client.post(f"{ROOT}provider/{provider.pk}/change/", provider_form(name="Renamed"))
    assert key_of(provider) == "sk-1"
    assert provider.name == "Renamed"


def test_a_new_key_replaces_the_old_one(admin_client, provider):
    admin_client.post(f"{ROOT}provider/{provider.pk}/change/", provider_form(new_api_key="sk-new"))
    assert key_of(provider) == "sk-new"


def test_a_key_can_be_removed(admin_client, provider):
    admin_client.post(f"{ROOT}provider/{provider.pk}/change/", provider_form(clear_api_key="on"))
    assert key_of(provider) == ""


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/v1", "http://api.example.org/v1", "https://api.example.org:8443/v1"],
)
def test_a_key_does_not_follow_to_another_address(admin_client, provider, address):
    answer = admin_client.post(f"{ROOT}provider/{provider.pk}/change/", provider_form(base_url=address), follow=True)
    assert key_of(provider) == ""
    assert "The key was removed" in answer.content.decode()


def test_a_key_stays_with_another_path_of_its_address(admin_client, provider):
    admin_client.post(f"{ROOT}provider/{provider.pk}/change/", provider_form(base_url="https://api.example.org/v2"))
    assert key_of(provider) == "sk-1"


@pytest.mark.parametrize(
    "address",
    [
        "api.example.org",
        "ftp://api.example.org",
        "https://user:password@api.example.org/v1",
        "https://api.example.org/v1?key=1",
        "https://",
        "https://[::1",
        "https://a b/v1",
        "https://a:99999/v1",
    ],
)
def test_an_address_that_is_none_is_refused(admin_client, address):
    assert admin_client.post(f"{ROOT}provider/add/", provider_form(base_url=address)).status_code == 200
    assert not Provider.objects.exists()


@pytest.mark.parametrize("address", ["http://ollama:11434/v1", "http://127.0.0.1:8080/v1", "https://[::1]:8080/v1"])
def test_addresses_of_an_inner_network_are_accepted(admin_client, address):
    admin_client.post(f"{ROOT}provider/add/", provider_form(base_url=address))
    assert Provider.objects.get().base_url == address


def test_what_the_environment_sets_is_shown_and_cannot_be_changed(admin_client, locked):
    page = admin_client.get(f"{ROOT}provider/{locked.pk}/change/")
    assert "OPENAI_BASE_URL" in page.content.decode()
    changed = provider_form(base_url="https://evil.example/v1")
    assert admin_client.post(f"{ROOT}provider/{locked.pk}/change/", changed).status_code == 403
    assert admin_client.post(f"{ROOT}provider/{locked.pk}/delete/", {"post": "yes"}).status_code == 403
    admin_client.post(f"{ROOT}provider/", {"action": "delete_selected", "_selected_action": [locked.pk], "post": "yes"})
    locked.refresh_from_db()
    assert locked.base_url == "https://env.example.org/v1"


def model_form(**changes) -> dict[str, str]:
    return {
        "name": "gpt",
        "kind": "chat",
        "context_size": "32000",
        "max_output_tokens": "1000",
        "extra_body": "{}",
        **changes,
    }


def test_of_a_locked_model_only_its_abilities_can_be_changed(admin_client, locked):
    row = locked.models.get()
    admin_client.post(f"{ROOT}languagemodel/{row.pk}/change/", model_form(name="other", vision="on"))
    row.refresh_from_db()
    assert (row.name, row.enabled, row.vision, row.context_size) == ("gpt-env", True, True, 32_000)


def test_ticking_default_takes_the_mark_from_the_one_before(admin_client, provider):
    old = LanguageModel.objects.create(provider=provider, name="old", is_default=True)
    admin_client.post(f"{ROOT}languagemodel/add/", model_form(provider=provider.pk, enabled="on", is_default="on"))
    assert list(LanguageModel.objects.filter(is_default=True).values_list("name", flat=True)) == ["gpt"]
    admin_client.post(
        f"{ROOT}languagemodel/{old.pk}/change/", model_form(name="old", provider=provider.pk, is_default="on")
    )
    assert list(LanguageModel.objects.filter(is_default=True)) == [old]


@pytest.mark.parametrize("extra", ["[1]", '"x"', "{", '{"a": NaN}', '{"a": "\\u0000"}', '{"a": "\\ud800"}'])
def test_extra_body_must_be_an_object_that_can_be_stored(admin_client, provider, extra):
    answer = admin_client.post(f"{ROOT}languagemodel/add/", model_form(provider=provider.pk, extra_body=extra))
    assert answer.status_code == 200
    assert not LanguageModel.objects.exists()


@pytest.mark.parametrize("nothing", ["", "[]", "null", '""'])
def test_an_empty_field_is_an_empty_object(admin_client, provider, nothing):
    admin_client.post(f"{ROOT}languagemodel/add/", model_form(provider=provider.pk, extra_body=nothing))
    assert LanguageModel.objects.get().extra_body == {}


def tool_list(**changes) -> dict[str, str]:
    tools = list(Tool.objects.order_by("name"))
    rows = {f"form-{number}-id": str(tool.pk) for number, tool in enumerate(tools)}
    return {"form-TOTAL_FORMS": str(len(tools)), "form-INITIAL_FORMS": str(len(tools)), **rows, **changes}


def test_tools_are_switched_in_the_list(admin_client):
    first, *others = Tool.objects.values_list("name", flat=True)
    switched = {f"form-{number}-enabled": "on" for number, _ in enumerate(others, 1)}
    admin_client.post(f"{ROOT}tool/", tool_list(**switched, _save="Save"))
    assert list(Tool.objects.filter(enabled=False).values_list("name", flat=True)) == [first]


def test_tools_are_switched_by_an_action(admin_client):
    chosen = list(Tool.objects.values_list("pk", flat=True))
    admin_client.post(f"{ROOT}tool/", {"action": "disable", "_selected_action": chosen})
    assert not Tool.objects.filter(enabled=True).exists()
    admin_client.post(f"{ROOT}tool/", {"action": "enable", "_selected_action": chosen[:1]})
    assert Tool.objects.filter(enabled=True).count() == 1


def test_the_definition_of_a_builtin_tool_cannot_be_changed(admin_client):
    tool = Tool.objects.get(name="calculator")
    admin_client.post(
        f"{ROOT}tool/{tool.pk}/change/",
        {
            "name": "x",
            "description": "x",
            "effect_class": "once",
            "approval": "always",
            "timeout": "7",
            "price": "0",
            "max_result_chars": "500",
        },
    )
    changed = Tool.objects.get(pk=tool.pk)
    assert (changed.name, changed.description, changed.effect_class) == (tool.name, tool.description, "pure")
    assert (changed.timeout, changed.enabled) == (7, False)
    assert admin_client.get(f"{ROOT}tool/add/").status_code == 403
    assert admin_client.post(f"{ROOT}tool/{tool.pk}/delete/", {"post": "yes"}).status_code == 403


def agent_form(**changes) -> dict[str, str]:
    fields = {"name": "Helper", "icon": "bot", "mode": "react", "max_iterations": "5"}
    fields |= {
        "starters": "One?\n\n Two? ",
        "examples": "[]",
        "workflows-TOTAL_FORMS": "0",
        "workflows-INITIAL_FORMS": "0",
    }
    return {**fields, **changes}


def test_an_agent_with_worked_examples_is_saved(admin_client):
    examples = [[{"role": "user", "content": "Grüße"}, {"role": "assistant", "content": "Hallo"}]]
    admin_client.post(f"{ROOT}agent/add/", agent_form(examples=json.dumps(examples), enabled="on"))
    made = Agent.objects.get(name="Helper")
    assert made.examples == examples
    assert made.starters == ["One?", "Two?"]
    assert "Grüße" in admin_client.get(f"{ROOT}agent/{made.pk}/change/").content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("examples", '{"role": "user"}'),
        ("examples", '["Hello"]'),
        ("examples", '[[{"role": "system", "content": "x"}]]'),
        ("examples", '[[{"role": "user", "content": 1}]]'),
        ("examples", '[[{"role": "user", "content": "no answer"}]]'),
        ("examples", "[[]]"),
        ("examples", '[[{"role": "user", "content": "x", "name": "y"}, {"role": "assistant", "content": "z"}]]'),
        ("max_iterations", "0"),
    ],
)
def test_an_agent_that_could_not_run_is_refused(admin_client, field, value):
    answer = admin_client.post(f"{ROOT}agent/add/", agent_form(**{field: value}))
    assert field in answer.context["adminform"].form.errors
    assert not Agent.objects.filter(name="Helper").exists()


def test_the_first_page_says_what_is_missing_until_nothing_is(admin_client, provider, settings, django_user_model):
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    page = admin_client.get("/admin/")
    assert [step.title for step in page.context["steps"] if not step.done] == [
        "Connect a model",
        "Let it send mail",
        "Invite your team",
        "Ask a question",
    ]
    LanguageModel.objects.create(provider=provider, name="gpt")
    django_user_model.objects.create_user("grace")
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    page = admin_client.get("/admin/")
    assert [step.title for step in page.context["steps"] if not step.done] == ["Ask a question"]


@pytest.mark.parametrize("table", ["provider", "languagemodel", "route", "tool", "agent", "connector"])
def test_lists_take_the_same_number_of_queries_for_many_rows(admin_client, django_assert_max_num_queries, table):
    def fill(first: int, last: int) -> None:
        for number in range(first, last):
            provider = Provider.objects.create(name=f"P{number}", base_url="https://x.example/v1")
            model = LanguageModel.objects.create(provider=provider, name="m")
            Agent.objects.create(name=f"A{number}", model=model)
            connector = Connector.objects.create(kind="http", name=f"C{number}")
            Tool.objects.create(name=f"T{number}", description="x", connector=connector, key="x")
            route = Route.objects.create(name=f"r{number}")
            RouteEntry.objects.create(route=route, model=model)

    fill(0, 2)
    admin_client.get(f"{ROOT}{table}/")
    with django_assert_max_num_queries(50) as few:
        admin_client.get(f"{ROOT}{table}/")
    fill(2, 12)
    with django_assert_max_num_queries(len(few)):
        assert admin_client.get(f"{ROOT}{table}/").status_code == 200
