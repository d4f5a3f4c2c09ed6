"""The OpenAPI documents: what Ninja makes of the code, completed with the way in, errors, words and examples.

Examples stand with the schemas. Here each body and each answer gets its own out of them, also where it is a list.
"""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from accounts import examples

Schema = dict[str, Any]

# Parameters of the addresses, which Ninja knows by type only.
_IDS: dict[str, tuple[str, str | int]] = {
    "conversation_id": ("A conversation, from `GET /conversations`.", examples.CONVERSATION),
    "message_id": ("A message, from `GET /conversations/{id}/messages`.", examples.ANSWER),
    "run_id": ("A run, as `POST /runs` and sending a message give it.", examples.RUN),
    "approval_id": ("A request, from `GET /approvals`.", examples.APPROVAL),
    "artifact_id": ("A file that a tool made, as the events of its run name it.", examples.ARTIFACT),
    "attachment_id": ("A file, from `GET /attachments`.", examples.ATTACHMENT),
    "webhook_id": ("A webhook, from `GET /webhooks`.", examples.WEBHOOK),
    "delivery_id": ("What was sent, from `GET /webhooks/{id}/deliveries`.", examples.DELIVERY),
    "collection_id": ("A collection, from `GET /collections`.", examples.COLLECTION),
    "document_id": ("A document, from `GET /collections/{id}/documents`.", examples.DOCUMENT),
    "passage_id": ("A passage, by the number in the address that an answer cites.", examples.PASSAGE),
    "model": ("An id of `GET /v1/models`.", "route-general"),
}
_WAY_IN = {"key": {"type": "http", "scheme": "bearer", "description": "An API key: `aa_…`"}}
_FILE = "name,amount\nrent,1200\n"


class DocumentedApi(NinjaAPI):
    """`problem` is the schema of errors, named `problem_name` in the document and sent as `problem_type`."""

    problem_name: str
    problem_type: str
    problem: Schema

    def errors_of(self, path: str, method: str, call: Schema) -> dict[int, str]:
        """What else a call may answer: status and words."""
        raise NotImplementedError

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**options)
        schemas = document["components"]["schemas"]
        schemas[self.problem_name] = self.problem
        # One class in two colours: the document knows one way in by header, one by cookie.
        document["components"]["securitySchemes"] = _WAY_IN
        answer = {self.problem_type: {"schema": {"$ref": f"#/components/schemas/{self.problem_name}"}}}
        for path, calls in document["paths"].items():
            for method, call in calls.items():
                call["security"] = [{"key": []}]
                for status, words in sorted(self.errors_of(path, method, call).items()):
                    call["responses"].setdefault(status, {"description": words, "content": answer})
                _illustrate(call, schemas)
        return document


def _illustrate(call: Schema, schemas: Schema) -> None:
    for parameter in call["parameters"]:
        if parameter["in"] == "path":
            parameter["description"], parameter["example"] = _IDS[parameter["name"]]
    for told in (call.get("requestBody", {}), *call["responses"].values()):
        for kind, content in told.get("content", {}).items():
            if "json" in kind:
                content["example"] = content_example(content["schema"], schemas)
            elif kind == "multipart/form-data":
                content.setdefault("example", {"file": _FILE})
    for told in call["responses"].values():
        if told.get("description") in ("OK", "Created", "Accepted", "No Content"):
            told["description"] = _DONE[told["description"]]


_DONE = {"OK": "Done", "Created": "Made", "Accepted": "On its way", "No Content": "Gone"}


def content_example(schema: Schema, schemas: Schema) -> Any:
    """The example of a schema, or one made of those of its parts. Raises KeyError where there is none."""
    if "$ref" in schema:
        return content_example(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    if "examples" in schema or "example" in schema:
        return schema["examples"][0] if "examples" in schema else schema["example"]
    if schema["type"] == "array":
        return [content_example(schema["items"], schemas)]
    return {name: content_example(part, schemas) for name, part in schema["properties"].items()}
