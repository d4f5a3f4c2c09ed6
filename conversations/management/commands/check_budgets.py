"""Compares what budgets say is used with the calls on record."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.balances import balances, rebuild


class Command(BaseCommand):
    help = "Compares what budgets say is used with the calls on record. Ends with an error when one says too little."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--rebuild", action="store_true", help="Set all budgets to what is on record.")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["rebuild"]:
            self.stdout.write(f"{rebuild()} budgets were set to what is on record.")
            return
        found = balances()
        for balance in found:
            if balance.used != balance.recorded:
                self.stdout.write(f"Budget {balance.budget}: {balance.used} used, {balance.recorded} on record.")
        if any(balance.used < balance.recorded for balance in found):
            raise CommandError("A budget says that less was used than is on record. Set it right with --rebuild.")
        self.stdout.write(f"{len(found)} budgets cover what was spent.")
