"""Why a model ended a run, for programs and for people."""

from agentapp.engine import ModelError


def failure_reason(error: ModelError) -> str:
    """The machine-readable reason of a run that its model ended."""
    names = {
        "ModelRefused": "model_refused",
        "ContextOverflow": "context_irreducible",
        "ContentFiltered": "content_filtered",
        "IncompleteStream": "model_unavailable",
    }
    return names.get(type(error).__name__, "model_error")


def explain(error: ModelError) -> str:
    """For people: what happened and what to do. The provider's own words are in the trace."""
    texts = {
        "model_refused": "The model's provider refused the request: its key, model name or quota is not accepted. "
        "An administrator can correct it in the admin under Providers.",
        "context_irreducible": "The conversation is too long for this model. Start a new chat or unpin long messages.",
        "content_filtered": "The model's provider declined to answer for reasons of content. Rephrase the question.",
        "model_unavailable": "The model's answer broke off. Try again.",
        "model_error": "The model's provider did not understand the request. Its words are on the run's page.",
    }
    return texts[failure_reason(error)]
