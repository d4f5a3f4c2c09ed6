"""The web process: HTTP through Django, `/ws/` through Channels."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentapp.settings")
http = get_asgi_application()  # sets Django up: everything below may import models

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.sessions import CookieMiddleware, SessionMiddleware  # noqa: E402
from django.urls import path  # noqa: E402

from conversations.consumers import PageConsumer  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": CookieMiddleware(SessionMiddleware(URLRouter([path("ws/", PageConsumer.as_asgi())]))),
    }
)
