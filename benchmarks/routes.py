"""What choosing a model costs: the decision alone, and with the rows it is made of, asked of a real PostgreSQL.

Usage: python -m benchmarks.routes [MODELS]
"""

import os
import statistics
import sys
import time
from collections.abc import Callable

from agentapp.embedded.testing import services

REPEAT = 2_000


def main(count: int) -> None:
    with services() as environment:
        os.environ.update(
            environment, DJANGO_SETTINGS_MODULE="agentapp.settings", OPENAI_BASE_URL="", OPENAI_API_KEY=""
        )
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        measure(count)


def measure(count: int) -> None:
    from django.contrib.auth.models import Group
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from accounts.models import User
    from tools_admin.models import LanguageModel, Provider, Route, RouteEntry
    from tools_admin.routing import Situation, choose, decide, entries_of

    person, group = User.objects.create(username="ada"), Group.objects.create(name="Sales")
    person.groups.add(group)
    provider, route = (
        Provider.objects.create(name="P", base_url="https://x.example/v1"),
        Route.objects.get(name="general"),
    )
    for number in range(count):
        model = LanguageModel.objects.create(provider=provider, name=f"m{number}")
        entry = RouteEntry.objects.create(route=route, model=model, position=number, max_tokens=100)
        entry.groups.add(group)
    RouteEntry.objects.filter(position=count - 1).update(max_tokens=None)
    situation = Situation(tools=True, tokens=lambda: 5_000, budget_left=lambda: 50)
    entries = entries_of("general", person)
    assert len(decide(entries, situation).models) == 1

    report(f"decision among {count} models", lambda: decide(entries, situation))
    report("with its rows from the database", lambda: choose(None, person, situation))
    with CaptureQueriesContext(connection) as queries:
        choose(None, person, situation)
    print(f"queries at the start of a run: {len(queries)}; in a call: 0")


def report(name: str, work: Callable[[], object]) -> None:
    took, cpu = [], time.process_time()
    for _ in range(REPEAT):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    cpu = (time.process_time() - cpu) / REPEAT
    ordered = sorted(took)
    middle, high = statistics.median(ordered), ordered[int(REPEAT * 0.99)]
    print(f"{name}: median {middle * 1000:.3f} ms, 99 % {high * 1000:.3f} ms, CPU {cpu * 1000:.3f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
