"""The engine stands alone."""

import subprocess
import sys


def loaded_modules(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(' '.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_importing_the_engine_loads_no_framework():
    modules = loaded_modules("import agentapp.engine")
    assert modules.isdisjoint({"django", "channels", "celery", "ninja", "accounts", "conversations", "tools_admin"})


def test_importing_the_engine_loads_no_provider_client():
    assert loaded_modules("import agentapp.engine").isdisjoint({"openai", "httpx2", "pydantic"})


def test_the_example_of_the_docstring_runs():
    import doctest

    import agentapp.engine

    outcome = doctest.testmod(agentapp.engine)
    assert outcome.attempted > 0
    assert outcome.failed == 0
