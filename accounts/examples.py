"""Of what the API's document shows as examples: one story that they all tell, so that ids lead from call to call.

Ada asks the demo agent for 12 * 12. `example` goes into the configuration of a schema.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

USER, AGENT = 7, 1
CONVERSATION = "0198f0fd-5384-7e75-86c7-e9dfeadcd207"
QUESTION, ANSWER = "0198f0fd-5385-7019-b5e8-fe27c82a716a", "0198f0fd-53a1-7694-aade-25ee9ca4a9de"
RUN = "0198f0fd-5386-712c-a9f1-ec273f637ae5"
APPROVAL, ASKED = "0198f0fe-1b06-7d4c-9e1a-3c5ad5f0a6b1", "0198f0fe-2c17-7f30-8a44-b1d0a7c9e2f5"
ATTACHMENT, ARTIFACT = "0198f0fc-b29e-76c3-ab67-50e40c094b27", "0198f0fd-5390-7b1f-9d55-0f6a4c83e7d2"
WEBHOOK, DELIVERY = "0198f0fa-77d1-7a3e-bb0c-6e9f2d41c858", "0198f0fd-53a4-7c62-8f17-94d3b0e5a1c7"
COLLECTION, DOCUMENT, PASSAGE = 3, "0198f0f9-4e20-7d08-a6b3-2c71f8d9e054", 42

ASKED_AT, STARTED_AT, ENDED_AT = "2026-01-31T12:00:00.123Z", "2026-01-31T12:00:00.144Z", "2026-01-31T12:00:01.618Z"
LATER = "2026-02-07T12:00:00.123Z"
USED = {"calls": 3, "input_tokens": 812, "cached_tokens": 256, "output_tokens": 45, "reasoning_tokens": 0}
MODEL = {
    "id": 1,
    "name": "gpt-5-mini",
    "label": "GPT-5 mini",
    "provider": "OpenAI",
    "route": "general",
    "reason": "the first of its route",
    "chain": [1],
}


def example(**fields: Any) -> ConfigDict:
    """One true example of a schema: what a client would send or get."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


def shown(schema: type[BaseModel]) -> list[Any]:
    """The example of a schema, as a list of one for schemas that hold it."""
    extra = schema.model_config["json_schema_extra"]
    assert isinstance(extra, dict)  # noqa: S101
    return list(extra["examples"])  # type: ignore[arg-type]
