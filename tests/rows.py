"""Rows of any table, made from what the model says about its fields. For tests that walk all tables."""

import itertools
import uuid
from datetime import timedelta
from typing import Any

from django.db import models
from django.utils import timezone
from pydantic import SecretStr

from agentapp.encryption import EncryptedTextField

_numbers = itertools.count(1)


def make_row(model: type[models.Model], **given: Any) -> Any:
    """A row with every required field filled, each text different; rows that it points to are made as well.

    With `secrets=text` every encrypted field holds that text.
    """
    number, secret = next(_numbers), given.pop("secrets", "")
    for field in model._meta.concrete_fields:
        if (
            field.name in given
            or field.attname in given
            or (field.primary_key and not isinstance(field, models.UUIDField))
        ):
            continue
        if isinstance(field, EncryptedTextField):
            given[field.name] = SecretStr(secret)
        elif not (field.has_default() or field.null or getattr(field, "auto_now_add", False) or field.blank):
            given[field.name] = _value(field, number)
    return model._default_manager.create(**given)


def _value(field: Any, number: int) -> Any:
    if isinstance(field, models.ForeignKey):
        return make_row(field.related_model)
    if field.choices:
        return field.flatchoices[0][0]
    if isinstance(field, models.UUIDField):
        return uuid.uuid4()
    if isinstance(field, models.DateTimeField):
        return timezone.now() + timedelta(days=1)
    if isinstance(field, models.IntegerField | models.FloatField | models.DecimalField):
        return 1
    if isinstance(field, models.JSONField):
        return {}
    if field.name == "base_url":
        return f"https://{number}.example.org/v1"
    return f"{field.name}_{number}"[: field.max_length or 100]
