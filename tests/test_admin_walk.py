"""Every list and form of the admin, walked: as many queries for many rows as for few, a help text at every field."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import models
from django.test import Client, RequestFactory
from django.urls import reverse

from accounts.models import User
from conversations.models import Run
from tests.rows import make_row

# Its pages are its own (conversations/admin_doubts.py), and list only what waits.
OWN_PAGES = {"conversations.Doubt"}
admin.autodiscover()
MODELS = sorted(
    (model for model in admin.site._registry if model._meta.label not in OWN_PAGES), key=lambda model: model._meta.label
)
# What the generic maker cannot guess.
FIELDS: dict[str, Callable[[], dict[str, Any]]] = {
    "accounts.Budget": lambda: {"user": make_row(User)},
    "conversations.Run": lambda: {"status": Run.Status.QUEUED},
}


def rows_of(model: type[models.Model], count: int) -> None:
    for _ in range(count):
        row = make_row(model, **FIELDS.get(model._meta.label, dict)())
        for field in model._meta.many_to_many:
            if field.related_model is Group or field.name == "groups":
                getattr(row, field.name).add(make_row(Group))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_a_list_takes_as_many_queries_for_fifty_rows_as_for_three(
    admin_client: Client, django_assert_max_num_queries: Any, model: type[models.Model]
) -> None:
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    rows_of(model, 3)
    admin_client.get(path)
    with django_assert_max_num_queries(60) as few:
        assert admin_client.get(path).status_code == 200
    rows_of(model, 50)
    with django_assert_max_num_queries(len(few)):
        page = admin_client.get(path)
    assert page.context["cl"].result_count >= 50


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_a_list_is_searchable_by_text(admin_client: Client, model: type[models.Model]) -> None:
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    assert admin.site._registry[model].search_fields, "no search"
    for text in ("x", "ü", "'", "%", "\x00", "a" * 5_000, "-1", "00000000-0000-0000-0000-000000000000"):
        assert admin_client.get(path, {"q": text}).status_code in (200, 302)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_every_field_of_a_form_has_a_help_text(admin_user: User, rf: RequestFactory, model: type[models.Model]) -> None:
    request, page = rf.get("/"), admin.site._registry[model]
    request.user = admin_user
    forms, hidden = [], {"DELETE", "ORDER"}
    if page.has_add_permission(request):
        forms.append(page.get_form(request, None))
    if page.has_change_permission(request):
        row = make_row(model, **FIELDS.get(model._meta.label, dict)())
        if page.has_change_permission(request, row):
            forms.append(page.get_form(request, row, change=True))
            formsets = [formset for formset, _inline in page.get_formsets_with_inlines(request, row)]
            forms += [formset.form for formset in formsets]
            hidden |= {formset.fk.name for formset in formsets}
    bare = {
        name
        for form in forms
        for name, field in form.base_fields.items()
        if not field.help_text and not field.widget.is_hidden and name not in hidden
    }
    assert bare == set()
