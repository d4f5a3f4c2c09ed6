import json
import os
import subprocess
import sys
from pathlib import Path

from agentapp.embedded.environment import CHECKOUT


def run(var: Path, **environ: str) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    names = ("DATABASE_URL", "REDIS_URL", "DEMO_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-m", "agentapp.embedded.demo_model"],
        env={**clean, "VAR_DIR": str(var), **environ},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done, json.loads((var / "demo_model" / "status.json").read_text())


def test_a_refused_demo_model_is_off_for_good(tmp_path):
    done, status = run(tmp_path / "var", DEMO_MODEL="none")
    assert done.returncode == os.EX_CONFIG
    assert status["state"] == "off"


def test_a_configured_endpoint_replaces_the_demo_model(tmp_path):
    done, status = run(tmp_path / "var", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.returncode == os.EX_CONFIG
    assert status["state"] == "off"


def test_a_missing_model_file_is_named(tmp_path):
    done, status = run(tmp_path / "var", DEMO_MODEL=str(tmp_path / "absent.gguf"))
    assert done.returncode == os.EX_CONFIG
    assert status["state"] == "failed"
    assert "absent.gguf" in str(status["message"])


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"no model at all")
    done, status = run(tmp_path / "var", DEMO_MODEL=str(tmp_path / "broken.gguf"))
    assert done.returncode != 0
    assert status["state"] == "failed"
    assert status["message"]


def test_without_packages_the_status_says_what_failed(tmp_path):
    done, status = run(tmp_path / "var", PIP_NO_INDEX="1", PIP_CONFIG_FILE="/dev/null", PIP_FIND_LINKS="")
    assert done.returncode == os.EX_UNAVAILABLE
    assert status["state"] == "failed"
    assert "could not be downloaded" in str(status["message"])
