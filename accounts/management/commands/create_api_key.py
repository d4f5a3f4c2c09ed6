from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.errors import UserUnknown
from accounts.models import ApiKey, validate_network
from accounts.scopes import Scope
from accounts.services import active_user, create_api_key

MAX_DAYS = 36_500


class Command(BaseCommand):
    help = "Makes an API key for a user and prints it as the last line. It cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True, help="the user's name")
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument("--expires", type=int, metavar="DAYS", help="days until the key closes; never by default")

        parser.add_argument(
            "--scopes",
            metavar="SCOPES",
            help=f"what the key allows, separated by commas: {', '.join(Scope.values)}; by default everything",
        )
        parser.add_argument(
            "--addresses",
            metavar="NETWORKS",
            help="from where it may be used, separated by commas; by default anywhere",
        )

    def handle(
        self,
        *args: Any,
        user: str,
        name: str,
        expires: int | None = None,
        scopes: str | None = None,
        addresses: str | None = None,
        **options: Any,
    ) -> None:
        longest = ApiKey._meta.get_field("name").max_length or 0
        if not 0 < len(name.strip()) <= longest:
            raise CommandError(f"--name must have 1 to {longest} characters.")
        if expires is not None and not 0 < expires <= MAX_DAYS:
            raise CommandError(f"--expires must be between 1 and {MAX_DAYS} days.")
        wanted = Scope.values if scopes is None else _parts(scopes)
        unknown = [scope for scope in wanted if scope not in Scope.values]
        if unknown or not wanted:
            raise CommandError(f"--scopes must be of {', '.join(Scope.values)}; not: {', '.join(unknown) or 'none'}.")
        expires_at = timezone.now() + timedelta(days=expires) if expires else None
        try:
            for network in (networks := _parts(addresses or "")):
                validate_network(network)
            _, text = create_api_key(
                active_user(user), name.strip(), expires_at, scopes=dict.fromkeys(wanted), addresses=networks
            )
        except ValidationError as error:
            raise CommandError(f"--addresses: {' '.join(error.messages)}") from None
        except UserUnknown as error:
            raise CommandError(f"{error} Accounts are made in the admin under People.") from None
        self.stdout.write(text)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
