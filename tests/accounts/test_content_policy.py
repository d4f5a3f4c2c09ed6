import pytest

LOGIN = "/account/login/"


def policy(answer) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in answer["Content-Security-Policy"].split(";"))
    return {name: sources for name, _, sources in parts}


@pytest.mark.parametrize("path", ["/", LOGIN, "/account/password/reset/", "/setup/unknown/", "/nowhere/"])
def test_pages_run_no_inline_and_no_generated_code(client, ada, path):
    client.force_login(ada) if path == "/" else None
    found = policy(client.get(path))
    assert found["default-src"] == "'none'"
    for sources in found.values():
        assert "unsafe" not in sources
        assert "*" not in sources and "http" not in sources


def test_the_admin_alone_may_do_what_its_library_needs(client, ada):
    client.force_login(ada)
    found = policy(client.get("/admin/"))
    assert "'unsafe-eval'" in found["script-src"]
    assert "'unsafe-inline'" not in found["script-src"]
    assert "'unsafe-inline'" in found["style-src"]
    assert found["frame-ancestors"] == "'none'"
