"""Sends the same tasks through several routes, waits for the end, and prints what they came to."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from agentapp.engine.comparison import BadTaskSet, Figures, TaskSet, figures_of
from conversations.comparison import services
from conversations.comparison.export import as_csv, as_json
from conversations.errors import ConversationError
from conversations.models import Comparison
from tools_admin.errors import NoModel
from tools_admin.models import Agent, LanguageModel

LONG_SECONDS = 15
HEADINGS = (
    ("route", 14),
    ("attempts", 9),
    ("completed", 10),
    ("accepted", 9),
    ("declined", 9),
    ("failed", 7),
    ("calls", 15),
    ("uncached", 20),
    ("cached", 16),
    ("reasoning", 16),
    ("cost", 18),
    ("seconds", 18),
    ("recovered", 16),
    ("misled", 16),
)


LEGEND = """\
Means of an attempt, with the least and the most. Failed: with what broke off. Recovered, misled: how many got over a
failing tool, over a misleading result, of those that met one."""


class Command(BaseCommand):
    help = (
        "Sends the same tasks through several routes in a worker, waits, and prints completion, wrongly accepted "
        "answers, calls, tokens, cost, time and recovery of each. Stop waiting with Ctrl-C: that stops it, too."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        known = ", ".join(services.ROUTES)
        parser.add_argument("set", nargs="?", help="a task set, .yaml or .csv; by default the starter set")
        parser.add_argument("--routes", default=",".join(services.ROUTES), help=f"separated by commas: {known}")
        parser.add_argument("--repeats", type=int, default=3, help="of each task in each route; 3 by default")
        parser.add_argument("--model", help="a model's name, or `scripted`; by default the agent's")
        parser.add_argument("--agent", help="an agent's name; by default the first one of the user")
        parser.add_argument("--user", help="whose rights and budgets hold; by default the first administrator")
        parser.add_argument("--faults", default="own", choices=list(services.FAULTS), help="own: as the tasks say")
        parser.add_argument("--tokens", type=int, default=services.LIMITS["tokens"], help="of one attempt at most")
        parser.add_argument("--seconds", type=int, default=services.LIMITS["seconds"], help="of one attempt at most")
        parser.add_argument("--export", help="a file to write, .csv or .json")

    def handle(self, *args: Any, **options: Any) -> None:
        export = Path(options["export"]) if options["export"] else None
        if export and export.suffix.lower() not in (".csv", ".json"):
            raise CommandError("--export takes the name of a .csv or .json file.")
        for name in ("tokens", "seconds"):
            if options[name] < 1:
                raise CommandError(f"--{name} must be at least 1.")
        user = _user(options["user"])
        scripted = options["model"] == "scripted"
        try:
            comparison = services.start_comparison(
                user,
                _task_set(options["set"]),
                routes=[route.strip() for route in options["routes"].split(",") if route.strip()],
                repeats=options["repeats"],
                agent=_agent(options["agent"], user),
                model=None if scripted or not options["model"] else _model(options["model"], user),
                scripted=scripted,
                faults=options["faults"],
                limits={"tokens": options["tokens"], "seconds": options["seconds"]},
            )
        except (ConversationError, NoModel) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{comparison}: {comparison.wanted} attempts ({comparison.id})")
        try:
            self._wait(comparison)
        except KeyboardInterrupt:
            services.request_stop(comparison)
            self.stdout.write("It is being stopped; what was done is kept.")
        self._print(comparison)
        if export:
            export.write_text(as_csv(comparison) if export.suffix.lower() == ".csv" else as_json(comparison))
            self.stdout.write(f"Written to {export}.")
        if comparison.status == Comparison.Status.FAILED:
            raise CommandError(comparison.reason)

    def _wait(self, comparison: Comparison) -> None:
        begun, told, shown = time.monotonic(), False, -1
        while comparison.is_active:
            time.sleep(0.5)
            comparison.refresh_from_db()
            done = comparison.attempts.exclude(outcome="running").count()
            if done // 50 > shown // 50 and done:
                self.stdout.write(f"{done} of {comparison.wanted} …")
                shown = done
            if not told and comparison.epoch == 0 and time.monotonic() - begun > LONG_SECONDS:
                self.stdout.write("No worker has taken it yet. Is one running (`make run`)?")
                told = True

    def _print(self, comparison: Comparison) -> None:
        self.stdout.write("\n" + " ".join(f"{heading:>{width}}" for heading, width in HEADINGS))
        for one in figures_of(comparison.attempts.defer("answer", "trace")):
            cells = zip(_cells(one), HEADINGS, strict=True)
            self.stdout.write(" ".join(f"{cell:>{width}}" for cell, (_, width) in cells))
            if one.fewer_calls_but_failed:
                self.stdout.write(f"{'':>15}fewer calls, but it completed less")
        self.stdout.write(f"\n{LEGEND}\n{comparison.get_status_display()}. {comparison.reason}".rstrip())


def _cells(one: Figures) -> list[str]:
    measures = one.measures
    calls, cost = measures["model_calls"], measures["cost"]
    return [
        one.route,
        str(one.started),
        f"{one.completed:.0%}",
        f"{one.accepted:.0%}",
        str(one.counts["declined"]),
        str(one.counts["failed"] + one.counts["broken_off"]),
        f"{calls.mean:.1f} ({calls.least:.0f}–{calls.most:.0f})",
        *(
            f"{measures[name].mean:,.0f} ({measures[name].least:,.0f}–{measures[name].most:,.0f})"
            for name in ("uncached", "cached", "reasoning")
        ),
        f"{cost.mean / 1e6:.4f} (–{cost.most / 1e6:.4f})",
        f"{measures['seconds'].mean:.2f} (–{measures['seconds'].most:.2f})",
        f"{one.after_failures.recovered} of {one.after_failures.met}",
        f"{one.after_misleading.recovered} of {one.after_misleading.met}",
    ]


def _task_set(name: str | None) -> TaskSet:
    path = Path(name) if name else services.STARTER
    try:
        return services.read_task_set(path.read_text(), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    except BadTaskSet as error:
        raise CommandError(f"{path}: {error}") from None


def _user(name: str | None) -> User:
    people = User.objects.filter(is_active=True)
    user = people.filter(username=name).first() if name else people.filter(is_superuser=True).order_by("pk").first()
    if user is None:
        raise CommandError(f"There is no active user {name}." if name else "There is no administrator: name a --user.")
    return user


def _agent(name: str | None, user: User) -> Agent | None:
    if not name:
        return None
    agent = Agent.objects.visible_to(user).filter(name=name).first()
    if agent is None:
        names = ", ".join(Agent.objects.visible_to(user).values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no agent {name!r} for {user}. Agents: {names}.")
    return agent


def _model(name: str, user: User) -> LanguageModel:
    usable = LanguageModel.objects.usable().visible_to(user)
    model = usable.filter(name=name).first()
    if model is None:
        names = ", ".join(sorted(set(usable.values_list("name", flat=True)))) or "none"
        raise CommandError(f"There is no model {name!r} for {user}. Models: scripted, {names}.")
    return model
