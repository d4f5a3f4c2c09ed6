"""Celery's part: checks, which talk to endpoints for seconds or minutes."""

from agentapp.celery import app
from tools_admin import checks


@app.task
def check_provider(provider_id: int) -> None:
    checks.check_provider(provider_id)


@app.task
def check_model(model_id: int) -> None:
    checks.check_model(model_id)


def resume_documents() -> None:
    """Documents that lost their message or their worker, or wait for the embedding model."""
    from tools_admin.knowledge import reading, storing

    if reading.due().exists():
        storing.wake_readers()


@app.task
def read_documents() -> None:
    from tools_admin.knowledge import reading

    reading.read_documents()
