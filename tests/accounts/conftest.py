"""The cast. Models are imported late: this file is read before the settings are."""

import secrets

import pytest
from django.test import Client

PASSWORD = "correct horse battery"


@pytest.fixture
def ada(db, django_user_model):
    """An administrator."""
    return django_user_model.objects.create_superuser("ada", "ada@example.org", PASSWORD)


@pytest.fixture
def grace(db, django_user_model):
    """A person without rights in the admin."""
    return django_user_model.objects.create_user("grace", "grace@example.org", PASSWORD)


@pytest.fixture
def browser() -> Client:
    """A client with a network of its own: sign-in limits are counted by network and outlive a test."""
    parts = ":".join(secrets.token_hex(2) for _ in range(4))
    return Client(REMOTE_ADDR=f"fd00:{parts}::1")
