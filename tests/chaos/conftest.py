"""One installation for the folder; what a test took away is there again for the next one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.installation import Chaos
from tests.conversations.test_budgets import give_budget
from tests.fake_model import FakeModel
from tests.product import Person


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    model = FakeModel().start()
    chaos = Chaos(Path(tmp_path_factory.mktemp("chaos")), model)
    try:
        chaos.start()
        yield chaos
    finally:
        chaos.close()
        model.end()


@pytest.fixture
def chaos(attacked: Chaos) -> Iterator[Chaos]:
    attacked.restore()
    yield attacked


@pytest.fixture
def person(chaos: Chaos) -> Person:
    """Somebody who pays for what they ask, so that every run shows whether its calls were paid for."""
    person = chaos.person()
    give_budget(chaos, person, 10**12)
    chaos.unpaid_before = len(chaos.model.requests) - chaos.model.refused
    return person
