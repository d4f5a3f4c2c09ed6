"""What is answered instead of a completion."""


class CompletionError(Exception):
    """In the words and codes of OpenAI's interface. `retry_after` is in seconds."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        kind: str = "invalid_request_error",
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refused(message: str, param: str) -> CompletionError:
    """The request cannot be done as it is."""
    return CompletionError(400, message, param=param, code="unsupported_value")


def unknown_model(model: str) -> CompletionError:
    text = f"The model {model[:100]!r} does not exist or is not yours. GET /v1/models lists yours."
    return CompletionError(404, text, param="model", code="model_not_found")
