"""The language and time zone that a signed-in person chose."""

import zoneinfo
from collections.abc import Callable

from django.conf import settings
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from accounts.models import User
from agentapp.in_loop import InLoop


class PreferencesMiddleware(InLoop):
    """After authentication; what is not chosen stays as `LocaleMiddleware` and the settings have it."""

    get_response: Callable[[HttpRequest], HttpResponse]

    def waits(self, request: HttpRequest) -> bool:
        return settings.SESSION_COOKIE_NAME in request.COOKIES

    def process_request(self, request: HttpRequest) -> None:
        timezone.deactivate()
        try:
            if "_auth_user_id" not in request.session:
                return  # nobody is signed in: no query to find that out
            user = request.user
            if not isinstance(user, User):
                return
        except OperationalError:
            return  # the page says that the database is away, and this is no place to answer
        if user.language:
            translation.activate(user.language)
            request.LANGUAGE_CODE = user.language
        if user.time_zone:
            timezone.activate(zoneinfo.ZoneInfo(user.time_zone))
