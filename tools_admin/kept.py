"""What was read of the configuration, kept by the process until a row of it changes.

Every run asks for the same few lists of agents, tools and models, and putting such a question together with the ORM
costs far more than its answer. Whether a row has changed is one statement: PostgreSQL gives each version of a row its
own `xmin` and `ctid`, so their sum over a table is another one after any change, whoever made it and however.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from django.db.models import Model

from accounts.models import User
from agentapp.database import prepared_cursor

T = TypeVar("T")

MOST_KEPT = 200
_GROUPS = "(SELECT array_agg(group_id ORDER BY group_id) FROM accounts_user_groups WHERE user_id = %s::bigint)"
_VERSION = "(SELECT sum(hashtextextended(concat(xmin, ctid), 0)) FROM {})"


class _Moment(NamedTuple):
    """What a person's groups are, and the version of all rows, by table."""

    person: int | None
    groups: tuple[int, ...]
    versions: dict[str, Any]


_moment: ContextVar[_Moment | None] = ContextVar("moment", default=None)
_all: "list[Kept[Any]]" = []


class Kept(Generic[T]):
    """Answers that depend on nothing but the rows of some models, what these have many-to-many, and on a person no
    further than `visible_to` of the configuration does: whether they are active, and in which groups.

    Whoever gets an answer shares it with others, so nobody changes it.
    """

    def __init__(self, *models: type[Model]) -> None:
        self._models = models
        self._now: tuple[list[Any], dict[Any, T]] = ([], {})  # the version of all rows, and the answers of that time
        _all.append(self)

    def get(self, key: Any, user: User | None, read: Callable[[], T]) -> T:
        """What `read` gave for this key and people like this one, if no row has changed since, else what it gives."""
        person = user.pk if user else None
        now = _moment.get()
        if now is None or person not in (now.person, None):
            now = _look(person, self.tables)
        version = [now.versions[table] for table in self.tables]
        known, answers = self._now
        if known != version or len(answers) >= MOST_KEPT:
            answers = {}
            self._now = (version, answers)
        whose = (key, user and user.is_active, user and now.groups)
        if whose not in answers:
            answers[whose] = read()  # it may see newer rows than those it is kept for, never older ones
        return answers[whose]

    @cached_property
    def tables(self) -> list[str]:
        between = [field.m2m_db_table() for model in self._models for field in model._meta.local_many_to_many]
        return [model._meta.db_table for model in self._models] + between


@contextmanager
def at_one_moment(user: User) -> Iterator[None]:
    """Whether rows have changed is asked once for all that is got meanwhile, for this person or for nobody."""
    token = _moment.set(_look(user.pk, sorted({table for kept in _all for table in kept.tables})))
    try:
        yield
    finally:
        _moment.reset(token)


def _look(person: int | None, tables: Iterable[str]) -> _Moment:
    names = list(tables)
    with prepared_cursor() as cursor:
        cursor.execute(f"SELECT {', '.join([_GROUPS, *map(_VERSION.format, names)])}", [person])
        groups, *versions = cursor.fetchone()
    return _Moment(person, tuple(groups or ()), dict(zip(names, versions, strict=True)))
