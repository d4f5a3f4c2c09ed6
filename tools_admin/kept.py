"""What was read of the configuration, kept by the process until a row of it changes.

Every run asks for the same few lists of agents, tools and models, and putting such a question together with the ORM
costs far more than its answer. Whether a row has changed is one statement: PostgreSQL gives each version of a row its
own `xmin` and `ctid`, so their sum over a table is another one after any change, whoever made it and however.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Model

from accounts.models import User

T = TypeVar("T")

MOST_KEPT = 200
_GROUPS = "(SELECT array_agg(group_id ORDER BY group_id) FROM accounts_user_groups WHERE user_id = %s::bigint)"
_VERSIONS = "(SELECT sum(hashtextextended(concat(xmin, ctid), 0)) FROM {})"


class Kept(Generic[T]):
    """Answers that depend on nothing but the rows of some models, what these have many-to-many, and on a person no
    further than `visible_to` of the configuration does: whether they are active, and in which groups.

    Whoever gets an answer shares it with others, so nobody changes it.
    """

    def __init__(self, *models: type[Model]) -> None:
        self._models = models
        self._now: tuple[list[Any], dict[Any, T]] = ([], {})  # the version of all rows, and the answers of that time

    def get(self, key: Any, user: User | None, read: Callable[[], T]) -> T:
        """What `read` gave for this key and people like this one, if no row has changed since, else what it gives."""
        with connection.cursor() as cursor:
            cursor.execute(self._question, [user.pk if user else None])
            groups, *version = cursor.fetchone()
        known, answers = self._now
        if known != version or len(answers) >= MOST_KEPT:
            answers = {}
            self._now = (version, answers)
        whose = (key, user and user.is_active, groups and tuple(groups))
        if whose not in answers:
            answers[whose] = read()  # it may see newer rows than those it is kept for, never older ones
        return answers[whose]

    @cached_property
    def _question(self) -> str:
        tables = [model._meta.db_table for model in self._models]
        between = [field.m2m_db_table() for model in self._models for field in model._meta.local_many_to_many]
        return f"SELECT {', '.join([_GROUPS, *map(_VERSIONS.format, [*tables, *between])])}"
