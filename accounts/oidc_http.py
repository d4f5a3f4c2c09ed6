"""How sign-in by OpenID Connect leaves the process: django-allauth's `requests`, carried by `agentapp.outbound`."""

from typing import Any

import requests
from asgiref.sync import async_to_sync
from django.conf import settings
from requests.adapters import BaseAdapter

from agentapp.outbound import OutboundError, Policy, fetch

MAX_BYTES = 1_000_000


class OutboundAdapter(BaseAdapter):
    """The issuer's own host may be anywhere, because the operator named it; all others only on the public internet."""

    def send(
        self, request: requests.PreparedRequest, stream: bool = False, timeout: Any = None, *_: Any, **__: Any
    ) -> requests.Response:
        body: Any = request.body.encode() if isinstance(request.body, str) else request.body
        policy = Policy(max_bytes=MAX_BYTES).allowing(settings.OIDC_ISSUER)
        headers = {name: str(value) for name, value in request.headers.items() if name.lower() != "accept-encoding"}
        try:
            answer = async_to_sync(fetch)(
                request.method or "GET",
                request.url or "",
                policy=policy,
                headers=headers,
                content=body,
                timeout=timeout,
            )
        except OutboundError as error:
            raise requests.ConnectionError(str(error)) from None
        response = requests.Response()
        response.status_code, response.reason = answer.status_code, answer.reason_phrase
        response.headers = requests.structures.CaseInsensitiveDict(answer.headers)
        response._content, response.request, response.url = answer.content, request, str(answer.url)
        return response

    def close(self) -> None:
        """Nothing stays open."""
