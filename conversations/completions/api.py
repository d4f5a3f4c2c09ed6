"""`/v1`: endpoints that existing OpenAI clients call."""

from http import HTTPStatus

import orjson
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Router

from accounts.auth import AsyncApiAuth, caller, sign_in_of
from agentapp.database import in_thread
from conversations.completions import service
from conversations.completions.errors import CompletionError, unknown_model
from conversations.completions.replies import STREAM, CompletionOut
from conversations.completions.reply import Reply
from conversations.completions.schemas import CompletionIn, ModelList, ModelOut
from conversations.completions.stream import Opened, whole
from conversations.sse import MEDIA_TYPE

router = Router(tags=["OpenAI clients"])


@router.get("/models", response=ModelList, summary="The agents and routes you may ask")
def list_models(request: HttpRequest) -> ModelList:
    """An agent works with its own instructions and tools; a route's model gets the request as it is."""
    return ModelList(data=service.offered(caller(request)))


@router.get("/models/{model}", response=ModelOut, summary="One of them")
def get_model(request: HttpRequest, model: str) -> ModelOut:
    """404 `model_not_found` where it does not exist or is not yours."""
    for known in service.offered(caller(request)):
        if known.id == model:
            return known
    raise unknown_model(model)


@router.post(
    "/chat/completions",
    auth=AsyncApiAuth(),
    response=CompletionOut,
    summary="Ask",
    openapi_extra={
        "responses": {200: {"content": STREAM}},
    },
)
async def complete(request: HttpRequest, body: CompletionIn) -> HttpResponseBase:
    """A run that ends with the request: closing it stops the run."""
    user = caller(request)
    run, sign_in = await in_thread(lambda: (service.begin(user, body), sign_in_of(request)))
    pieces = Reply(run, user, sign_in).pieces()
    if not body.stream:
        return HttpResponse(orjson.dumps(await whole(run, body, pieces)), content_type="application/json")
    opened = Opened(run, body, pieces)
    await opened.begin()
    response = StreamingHttpResponse(opened.chunks(), content_type=f"{MEDIA_TYPE}; charset=utf-8")
    response["Cache-Control"] = "no-store, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


@router.api_operation(["GET", "POST", "DELETE"], "/{path:rest}", include_in_schema=False)
def unknown(request: HttpRequest, rest: str) -> None:
    text = f"{request.method} /v1/{rest[:100]} does not exist here; there are /v1/models and /v1/chat/completions."
    raise CompletionError(HTTPStatus.NOT_FOUND, text, code="unknown_url")
