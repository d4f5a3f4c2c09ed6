from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.errors import UserUnknown
from accounts.models import ApiKey
from accounts.services import active_user, create_api_key

MAX_DAYS = 36_500


class Command(BaseCommand):
    help = "Makes an API key for a user and prints it as the last line. It cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True, help="the user's name")
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument("--expires", type=int, metavar="DAYS", help="days until the key closes; never by default")

    def handle(self, *args: Any, user: str, name: str, expires: int | None, **options: Any) -> None:
        longest = ApiKey._meta.get_field("name").max_length or 0
        if not 0 < len(name.strip()) <= longest:
            raise CommandError(f"--name must have 1 to {longest} characters.")
        if expires is not None and not 0 < expires <= MAX_DAYS:
            raise CommandError(f"--expires must be between 1 and {MAX_DAYS} days.")
        expires_at = timezone.now() + timedelta(days=expires) if expires else None
        try:
            _, text = create_api_key(active_user(user), name.strip(), expires_at)
        except UserUnknown as error:
            raise CommandError(f"{error} Accounts are made in the admin under People.") from None
        self.stdout.write(text)
