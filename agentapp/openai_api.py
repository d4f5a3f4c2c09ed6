"""`/v1`, the interface that OpenAI's clients know: the same errors as everywhere, in the form that they read."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

from accounts.auth import ApiAuth
from agentapp import errors
from agentapp.api_document import DocumentedApi
from agentapp.json_body import BodyParser
from conversations.completions.api import router
from conversations.completions.errors import CompletionError

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "description": "What went wrong.",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string", "description": "For people."},
                "type": {"type": "string", "description": "The kind of error, as OpenAI's clients know it."},
                "param": {"type": ["string", "null"], "description": "The field that is wrong."},
                "code": {"type": ["string", "null"], "description": "Decide by it."},
            },
        }
    },
    "example": {
        "error": {
            "message": "The model 'agent-9' does not exist or is not yours. GET /v1/models lists yours.",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
    },
}
_ALWAYS = {
    401: "No key, or a dead one",
    403: "Not with this key",
    429: "Too often, or no budget left",
    503: "Interrupted",
}


DESCRIPTION = """\
What OpenAI's clients call: point them at `/v1` with a key of scope `chat`. Agents and routes are models. Errors have
the form that those clients read. [All other calls](/api/v1/docs)."""


class OpenAIApi(DocumentedApi):
    problem_name, problem_type, problem = "Error", "application/json", _ERROR

    def errors_of(self, path: str, method: str, call: dict[str, Any]) -> dict[int, str]:
        wrong = _ALWAYS | {400: "Cannot be read or done as it is"}
        if "{" in path or method == "post":
            wrong[404] = "No such model, or not yours"
        if method == "post":
            wrong |= {409: "Somebody stopped the run", 413: "Too large", 500: "The run failed"}
        return wrong

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        answer: HttpResponse = super().on_exception(request, exc)
        if answer["Content-Type"] != "application/problem+json":
            return answer
        translated = JsonResponse(_translated(json.loads(answer.content)), status=answer.status_code)
        for name in ("Retry-After", "WWW-Authenticate"):
            if name in answer:
                translated[name] = answer[name]
        if answer.status_code == 422:
            translated.status_code = 400
        return translated


# By status; what is not here is about the request.
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {"not_signed_in": "invalid_api_key", "rate_limited": "rate_limit_exceeded"}


def _translated(problem: dict[str, Any]) -> dict[str, Any]:
    status, code = problem["status"], problem["code"]
    kind = "server_error" if status >= 500 else _KINDS.get(status, "invalid_request_error")
    error = {"message": problem["detail"], "type": kind, "param": None, "code": _CODES.get(code, code)}
    if fields := problem.get("fields"):
        field = max(fields, key=lambda field: field["where"].count("."))  # of what may have several forms, the nearest
        where = field["where"].removeprefix("body.body").removeprefix(".")
        error |= {"param": where or None, "code": "invalid_value", "message": _in_words(where, field["what"])}
    return {"error": error}


def _in_words(where: str, what: str) -> str:
    if what == "Extra inputs are not permitted":
        return f"Unrecognized request argument supplied: {where}"
    return f"{where}: {what}" if where else what


api = OpenAIApi(
    title="Agent chat for OpenAI clients",
    version="1",
    description=DESCRIPTION,
    auth=ApiAuth(),
    parser=BodyParser(),
    docs_url=None,
    urls_namespace="openai",
)
api.add_router("", router)
errors.register(api)


@api.exception_handler(CompletionError)
def refused(_request: HttpRequest, error: CompletionError) -> HttpResponse:
    answer = JsonResponse(error.body, status=error.status)
    if error.retry_after:
        answer["Retry-After"] = str(error.retry_after)
    return answer
