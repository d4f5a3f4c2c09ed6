"""What the product puts into its own tables: after a migration, and from the environment."""

import pytest
from pydantic import SecretStr

from tests.at_once import at_once
from tools_admin.models import Agent, Connector, LanguageModel, Provider, Tool
from tools_admin.services import seed, sync_environment

pytestmark = pytest.mark.django_db


@pytest.fixture
def environment(settings):
    """Sets what the environment names; nothing by default."""

    def name(*, url: str = "", key: str = "", model: str = "", demo_url: str = "", demo: str = "") -> None:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.OPENAI_MODEL = url, key, model
        settings.DEMO_MODEL_URL, settings.DEMO_MODEL_KEY, settings.DEMO_MODEL = demo_url, "demo-key", demo
        sync_environment()

    name()
    return name


ENDPOINT = {"url": "https://api.example.org/v1", "key": "sk-env", "model": "gpt-env"}
DEMO = {"demo_url": "http://127.0.0.1:9999/v1"}


def usable() -> list[tuple[str, bool]]:
    return [(model.name, model.is_default) for model in LanguageModel.objects.usable()]


def test_a_fresh_database_has_the_builtin_tools_and_one_default_agent():
    assert {"calculator", "current_time", "query_demo_database"} <= set(Tool.objects.values_list("name", flat=True))
    agent = Agent.objects.get(is_default=True)
    assert {tool.name for tool in agent.tools.all()} == {"calculator", "current_time", "query_demo_database"}
    agent.full_clean()


def test_seeding_again_keeps_decisions_and_restores_definitions():
    Tool.objects.filter(name="calculator").update(enabled=False, timeout=1, description="edited", effect_class="once")
    Agent.objects.update(instructions="edited")
    seed()
    tool = Tool.objects.get(name="calculator")
    assert (tool.enabled, tool.timeout, tool.effect_class) == (False, 1, "pure")
    assert tool.description != "edited"
    assert Agent.objects.get().instructions == "edited"


def test_a_builtin_tool_that_is_gone_from_the_code_is_removed():
    builtin, shop = Connector.objects.get(kind="builtin"), Connector.objects.create(kind="http", name="Shop")
    Tool.objects.create(name="retired", description="", connector=builtin, key="retired")
    Tool.objects.create(name="from_elsewhere", description="", connector=shop, key="from_elsewhere")
    seed()
    assert set(Tool.objects.filter(name__in=["retired", "from_elsewhere"]).values_list("name", flat=True)) == {
        "from_elsewhere"
    }


def test_an_endpoint_in_the_environment_is_a_locked_default(environment):
    environment(**ENDPOINT)
    provider = Provider.objects.get()
    assert provider.is_locked and provider.enabled
    assert provider.api_key.get_secret_value() == "sk-env"
    assert usable() == [("gpt-env", True)]


def test_nothing_is_written_when_nothing_is_new(environment):
    environment(**ENDPOINT)
    before = Provider.objects.get().updated_at
    environment(**ENDPOINT)
    assert Provider.objects.get().updated_at == before


def test_a_changed_environment_changes_the_row(environment):
    environment(**ENDPOINT)
    environment(url="https://other.example.org/v1", key="sk-2", model="gpt-2")
    provider = Provider.objects.get()
    assert (provider.base_url, provider.api_key.get_secret_value()) == ("https://other.example.org/v1", "sk-2")
    assert usable() == [("gpt-2", True)]


def test_what_the_environment_no_longer_names_is_disabled(environment):
    environment(**ENDPOINT)
    environment()
    assert usable() == []
    environment(**ENDPOINT)
    assert usable() == [("gpt-env", True)]


def test_abilities_set_by_a_person_stay(environment):
    environment(**ENDPOINT)
    LanguageModel.objects.update(vision=True, context_size=32_000)
    environment(**ENDPOINT)
    model = LanguageModel.objects.get()
    assert (model.vision, model.context_size) == (True, 32_000)


def test_an_endpoint_without_a_model_is_told_in_the_log(environment, caplog):
    environment(url="https://api.example.org/v1")
    assert "OPENAI_MODEL" in caplog.text
    assert usable() == []


def test_without_an_endpoint_the_demo_model_answers(environment):
    environment(**DEMO)
    model = LanguageModel.objects.get()
    assert model.is_default and model.small and not model.tool_call
    assert "Demo model" in str(model)
    model.full_clean()


def test_the_demo_model_can_be_refused(environment):
    environment(**DEMO, demo="none")
    assert usable() == []


def test_another_demo_model_is_named_by_its_file(environment):
    environment(**DEMO, demo="/models/tiny.gguf")
    assert str(LanguageModel.objects.get()) == "Demo model (tiny.gguf)"


def test_an_endpoint_takes_the_place_of_the_demo_model(environment):
    environment(**DEMO)
    environment(**DEMO, **ENDPOINT)
    assert usable() == [("gpt-env", True)]
    environment(**DEMO)
    assert usable() == [("demo", True)]


def test_a_default_chosen_by_a_person_is_not_displaced(environment):
    provider = Provider.objects.create(name="Acme", base_url="https://api.example.org/v1", api_key=SecretStr(""))
    LanguageModel.objects.create(provider=provider, name="chosen", is_default=True)
    environment(**ENDPOINT)
    assert usable() == [("chosen", True), ("gpt-env", False)]


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_together_agree(environment, settings):
    settings.OPENAI_BASE_URL, settings.OPENAI_MODEL = "https://api.example.org/v1", "gpt-env"

    def start(number: int) -> None:
        sync_environment()
        seed()

    assert at_once(4, start) == [None] * 4
    assert usable() == [("gpt-env", True)]
