"""A worker's memory is taken by what it imports."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START = """
import sys, agentapp.worker
agentapp.worker.app.loader.import_default_modules()
import conversations.worker, tools_admin.gathering, tools_admin.guarded, agentapp.engine.openai_endpoint
print(" ".join(sys.modules))
"""


def test_a_worker_starts_without_pages_and_shells() -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agentapp.settings"}
    command = [sys.executable, "-c", START]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "conversations.tasks" in loaded
    pages = {"agentapp.urls", "agentapp.api", "conversations.admin", "ninja", "fido2", "requests"}
    assert not loaded & {*pages, "openai", "prompt_toolkit"}
