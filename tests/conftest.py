"""The session's own PostgreSQL and Valkey, and the whole product as real processes."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import django
import pytest
from django.conf import settings

from agentapp.database import release_connections
from agentapp.embedded.testing import services
from tests.fake_model import FakeModel
from tests.product import Product

# Fixtures that stand for installations of several processes.
WHOLE = frozenset({"running_product", "attacked", "installation", "chromium"})

_services = contextlib.ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Before pytest-django reads the settings. `-p no:django` does without both."""
    if not config.pluginmanager.is_blocked("django"):
        environment = _services.enter_context(services())
        for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "PUBLIC_URL", "EMBEDDED_BEAT"):
            os.environ.pop(name, None)
        os.environ.update(environment, DJANGO_SETTINGS_MODULE="agentapp.settings")
        django.setup()
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # hundreds of people are made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that mostly wait for other processes: `make test` has the rest compute beside them."""
    for item in items:
        if WHOLE.intersection(getattr(item, "fixturenames", ())) or "tests/embedded/" in item.nodeid:
            item.add_marker(pytest.mark.processes)


def pytest_unconfigure() -> None:
    _services.close()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """The database goes when nobody holds on to it."""
    yield
    release_connections()


@pytest.fixture(scope="session")
def fake_model() -> Iterator[FakeModel]:
    model = FakeModel().start()
    yield model
    model.end()


@pytest.fixture(scope="session")
def running_product(fake_model: FakeModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One web process and one worker for the whole session."""
    names = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEYS", "VAR_DIR")
    environment = {name: os.environ[name] for name in names}
    product = Product(environment, Path(tmp_path_factory.mktemp("product")), fake_model)
    try:
        product.start()
        yield product
    finally:
        product.stop()


@pytest.fixture
def product(running_product: Product) -> Iterator[Product]:
    """The running product with its model answering at once; restarts what a test before has stopped."""
    running_product.restore()
    yield running_product
