"""The only NinjaAPI: routers of the apps, errors, documentation."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.api import router as accounts
from accounts.auth import ApiAuth
from agentapp import errors
from agentapp.api_document import DocumentedApi
from agentapp.json_body import AnswerRenderer, BodyParser
from conversations.api import router as conversations
from conversations.api_attachments import router as attachments
from conversations.webhooks.api import router as webhooks
from tools_admin.api import router as configuration
from tools_admin.knowledge_api import router as knowledge

DESCRIPTION = """\
Everything that the page can do, for programs. Send a key as `Authorization: Bearer aa_…`; people make keys under
*My account*.

Errors are `application/problem+json` with a stable `code`. Lists are `{"items": […], "next": …}`: give `next` back as
`cursor`. Every POST takes an `Idempotency-Key`. Each answer names its request in `X-Request-ID` and
says in `RateLimit-*` what is left of your limit.

OpenAI clients have [calls of their own](/v1/docs)."""

_FIELD = {
    "where": {"type": "string", "description": "The place, such as `body.body.title`."},
    "what": {"type": "string", "description": "What is wrong there."},
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string", "description": "Always `about:blank`."},
        "status": {"type": "integer", "description": "As in the answer's first line."},
        "code": {"type": "string", "enum": errors.all_codes(), "description": "Stable: decide by it."},
        "detail": {"type": "string", "description": "For people, in their language."},
        "fields": {
            "type": "array",
            "description": "With `invalid_request`: what is wrong where.",
            "items": {"type": "object", "properties": _FIELD},
        },
    },
    "example": {
        "type": "about:blank",
        "status": 404,
        "code": "not_found",
        "detail": "This does not exist or is not yours.",
    },
}
# What any call may answer, and what those with an id or a body may.
_ALWAYS = {
    400: "Cannot be read",
    401: "No key, or a dead one",
    403: "Not with this key",
    429: "Too often",
    503: "Interrupted",
}
_CONFLICTS = {409: "Something else is going on", 410: "Too late", 412: "Changed meanwhile", 413: "Too large"}


class Api(DocumentedApi):
    problem_name, problem_type, problem = "Problem", "application/problem+json", _PROBLEM

    def errors_of(self, path: str, method: str, call: dict[str, Any]) -> dict[int, str]:
        wrong = dict(_ALWAYS)
        if "{" in path:
            wrong[404] = "Does not exist, or is not yours"
        if call["parameters"] or "requestBody" in call:
            wrong[422] = "Fields are missing or wrong"
        if method != "get" or "cursor" in {parameter["name"] for parameter in call["parameters"]}:
            wrong |= _CONFLICTS
        if "multipart/form-data" in call.get("requestBody", {}).get("content", {}):
            wrong[415] = "Not this kind of file"
        if method != "get":
            wrong.setdefault(404, "Something that is named does not exist, or is not yours")
        return wrong


api = Api(
    title="Agent chat",
    version="1",
    description=DESCRIPTION,
    auth=ApiAuth(),
    parser=BodyParser(),
    renderer=AnswerRenderer(),
    docs_url=None,
    urls_namespace="api",
)
api.add_router("", accounts)
api.add_router("", conversations)
api.add_router("", attachments)
api.add_router("", configuration)
api.add_router("", webhooks)
api.add_router("", knowledge)
errors.register(api)


def docs(request: HttpRequest, document: str = "api:openapi-json") -> HttpResponse:
    """A document to read and to try out, by the name of its address. All it needs comes from here, and none of it is
    inline."""
    return render(request, "api_docs.html", {"document": document})
