import json

import pytest
from asgiref.sync import async_to_sync
from pydantic import SecretStr

from accounts.models import User
from agentapp.engine import EffectClass
from tests.factories import make_user
from tools_admin import services
from tools_admin.defaults import save_as_default
from tools_admin.errors import NoModel
from tools_admin.models import Agent, LanguageModel, Provider, Tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider() -> Provider:
    return Provider.objects.create(name="Acme", base_url="https://api.example.org/v1", api_key=SecretStr("sk-1"))


@pytest.fixture
def agent() -> Agent:
    found = services.default_agent()
    assert found is not None
    return found


def model(provider: Provider, name: str, **values) -> LanguageModel:
    return LanguageModel.objects.create(provider=provider, name=name, **values)


def test_the_default_agent_is_the_enabled_default_one():
    other = Agent.objects.create(name="Another")
    default = services.default_agent()
    assert default is not None and default.is_default
    Agent.objects.filter(is_default=True).update(enabled=False)
    assert services.default_agent() == other
    Agent.objects.update(enabled=False)
    assert services.default_agent() is None


def test_the_agents_own_model_comes_first(provider, agent):
    model(provider, "default", is_default=True)
    agent.model = own = model(provider, "own")
    choice = services.choose(agent)
    assert choice.model == own
    assert agent.name in choice.reason


def test_the_default_model_answers_for_agents_without_one(provider, agent):
    model(provider, "another")
    default = model(provider, "default", is_default=True)
    choice = services.choose(agent)
    assert (choice.model, choice.reason) == (default, "the default model")


def test_a_disabled_model_is_replaced_and_the_reason_says_so(provider, agent):
    agent.model = model(provider, "own", enabled=False)
    default = model(provider, "default", is_default=True)
    choice = services.choose(agent)
    assert choice.model == default
    assert "disabled" in choice.reason


def test_any_enabled_model_is_better_than_none(provider, agent):
    model(provider, "default", is_default=True, enabled=False)
    other = model(provider, "other")
    choice = services.choose(agent)
    assert choice.model == other
    assert "no default model" in choice.reason


def test_without_a_usable_model_the_message_says_what_to_do(provider, agent):
    model(provider, "one")
    Provider.objects.update(enabled=False)
    with pytest.raises(NoModel, match="admin"):
        services.choose(agent)


def test_disabling_a_tool_takes_it_from_the_agent(agent):
    user = make_user("reader")
    assert "calculator" in {tool.name for tool in services.tools_for(agent, user)}
    Tool.objects.filter(name="calculator").update(enabled=False)
    assert "calculator" not in {tool.name for tool in services.tools_for(agent, user)}


def test_a_disabled_user_and_a_deleted_agent_have_no_tools(agent):
    assert services.tools_for(agent, User(is_active=False)) == []
    assert services.tools_for(None, make_user("reader")) == []


def test_tool_rows_run_through_their_connector_with_the_limits_of_the_row():
    Tool.objects.filter(name="calculator").update(timeout=3, max_result_chars=123)
    [tool] = services.engine_tools(Tool.objects.filter(name="calculator"), User())
    assert (tool.timeout, tool.max_result_chars, tool.effect_class) == (3, 123, EffectClass.PURE)

    result = async_to_sync(tool.execute)({"expression": "6 * 7"})
    assert "42" in result.content and not result.is_error


def test_a_new_default_takes_the_mark_from_the_old_one(provider):
    old, new = model(provider, "old", is_default=True), model(provider, "new")
    save_as_default(new)
    assert list(LanguageModel.objects.filter(is_default=True)) == [new]
    save_as_default(old)
    assert list(LanguageModel.objects.filter(is_default=True)) == [old]


def test_one_endpoint_a_provider_until_its_row_changes(provider):
    clients = services.ModelClients()
    first = clients.get(provider)
    assert clients.get(Provider.objects.get()) is first
    provider.base_url = "https://other.example.org/v1"
    provider.save()
    second = clients.get(Provider.objects.get())
    assert second is not first
    assert str(second.url) == "https://other.example.org/v1/chat/completions"


def test_the_engines_model_is_the_row(provider):
    row = model(provider, "gpt", context_size=9_000, max_output_tokens=700, small=True, tool_call=False)
    made = services.chat_chain([row], services.ModelClients())
    assert (made.name, made.context_size, made.max_output_tokens) == ("gpt", 9_000, 700)
    assert made.abilities["small"] and not made.abilities.get("tool_call")


def test_the_model_is_missing_until_one_is_connected(provider):
    assert services.model_status()["state"] == "missing"
    model(provider, "gpt")
    assert services.model_status() == {"state": "ready", "message": "", "done_bytes": 0, "total_bytes": 0}


@pytest.mark.parametrize(
    ("file", "state"),
    [
        ({"state": "downloading", "done_bytes": 5, "total_bytes": 10, "message": "Half"}, "downloading"),
        ({"state": "verifying", "done_bytes": 10, "total_bytes": 10, "message": ""}, "loading"),
        ({"state": "ready", "done_bytes": 10, "total_bytes": 10, "message": ""}, "ready"),
        ({"state": "failed", "done_bytes": 0, "total_bytes": 0, "message": "No space left"}, "failed"),
        ({"state": "off"}, "missing"),
        ({"state": "something new"}, "loading"),
        (None, "loading"),
    ],
)
def test_the_demo_models_own_word_is_passed_on(settings, tmp_path, provider, file, state):
    settings.VAR_DIR = tmp_path
    Provider.objects.update(source=Provider.Source.DEMO)
    model(provider, "demo")
    if file is not None:
        (tmp_path / "demo_model").mkdir()
        (tmp_path / "demo_model" / "status.json").write_text(json.dumps(file))
    found = services.model_status()
    assert found["state"] == state
    assert found["message"] == (file or {}).get("message") or found["message"]
    assert found["done_bytes"] == (file or {}).get("done_bytes", 0)


def test_a_half_written_status_file_is_no_error(settings, tmp_path, provider):
    settings.VAR_DIR = tmp_path
    Provider.objects.update(source=Provider.Source.DEMO)
    model(provider, "demo")
    (tmp_path / "demo_model").mkdir()
    (tmp_path / "demo_model" / "status.json").write_text('{"state": "down')
    assert services.model_status()["state"] == "loading"
