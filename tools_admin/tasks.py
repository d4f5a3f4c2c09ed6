"""Celery's part: checks, which talk to endpoints for seconds or minutes."""

from agentapp.celery import app
from tools_admin import checks


@app.task
def check_provider(provider_id: int) -> None:
    checks.check_provider(provider_id)


@app.task
def check_model(model_id: int) -> None:
    checks.check_model(model_id)
