"""The one HTTP client, against a peer that tries everything."""

import ast
import contextlib
import datetime
import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from agentapp.outbound import OutboundTransport, Policy, Refused, Unreachable, fetch, join_path, parse
from tests.hostile import HostileServer
from tests.product import ROOT


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def policy(server: HostileServer) -> Policy:
    server.requests.clear()
    server.bodies.clear()
    return Policy(max_bytes=100_000).allowing(server.url)


class Elsewhere(httpcore2.AnyIOBackend):
    """Stands for the internet: every address leads to the hostile server, and is noted."""

    def __init__(self, port: int) -> None:
        self.port, self.connections = port, list[tuple[str, int]]()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: Any = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Any:
        self.connections.append((host, port))
        return await super().connect_tcp("127.0.0.1", self.port, timeout, local_address, socket_options)


def resolver(*answers: str) -> Any:
    """Gives one answer after the other, the last one for ever."""
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return [left.pop(0) if len(left) > 1 else left[0]]

    return resolve


async def test_what_is_not_allowed_is_not_reached(server: HostileServer, policy: Policy) -> None:
    with pytest.raises(Refused, match=r"127\.0\.0\.1 is not an address of the public internet"):
        await fetch("GET", server.url, policy=Policy())
    assert server.requests == []


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f000001", "2130706433", "[::ffff:127.0.0.1]", "①②⑦.⓪.⓪.①", "127。0。0。1"]
)
async def test_no_spelling_of_an_address_gets_through(server: HostileServer, policy: Policy, host: str) -> None:
    with pytest.raises((Refused, Unreachable)):
        await fetch("GET", f"http://{host}:{server.port}/", policy=Policy())
    assert server.requests == []


async def test_the_connection_goes_to_the_address_that_was_checked(server: HostileServer, policy: Policy) -> None:
    internet = Elsewhere(server.port)
    transport = OutboundTransport(policy, backend=internet, resolve=resolver("93.184.216.34", "127.0.0.1"))
    answer = await fetch("GET", "http://api.example.org/x", policy=policy, transport=transport)
    assert answer.text == "hello"
    assert internet.connections == [("93.184.216.34", 80)]
    assert "Host: api.example.org\r\n" in server.requests[0]


async def test_a_name_that_changes_its_address_is_caught_at_the_next_connection(
    server: HostileServer, policy: Policy
) -> None:
    internet = Elsewhere(server.port)
    resolve = resolver("93.184.216.34", "127.0.0.1")
    transport = OutboundTransport(policy, backend=internet, resolve=resolve)
    with pytest.raises(Refused, match=r"api\.example\.org \(127\.0\.0\.1\)"):
        await fetch("GET", "http://api.example.org/to302?http://api.example.org/", policy=policy, transport=transport)
    assert len(server.requests) == 1


@pytest.mark.parametrize("target", ["http://127.0.0.1:1/", "http://169.254.169.254/latest", "http://[::1]/"])
async def test_a_redirect_is_checked_like_a_first_address(server: HostileServer, policy: Policy, target: str) -> None:
    with pytest.raises(Refused, match="public internet"):
        await fetch("GET", f"{server.url}/to302?{target}", policy=policy)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://x/", "http://user:pw@127.0.0.1/", "http://"])
async def test_a_redirect_to_what_is_no_plain_address_ends(server: HostileServer, policy: Policy, target: str) -> None:
    with pytest.raises((Refused, Unreachable)):
        await fetch("GET", f"{server.url}/to302?{target}", policy=policy)
    assert len(server.requests) == 1


async def test_credentials_stay_with_their_origin(server: HostileServer, policy: Policy) -> None:
    secret = {"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Cookie": "s=s3cret", "Accept": "text/html"}
    with HostileServer() as other:
        both = policy.allowing(other.url)
        await fetch("GET", f"{server.url}/to302?{other.url}/", policy=both, headers=secret)
        await fetch("GET", f"{server.url}/to302?/here", policy=both, headers=secret)
        assert "s3cret" not in other.requests[0]
        assert "accept: text/html" in other.requests[0].lower()
    assert "s3cret" in server.requests[-1]


@pytest.mark.parametrize("status", [307, 308])
async def test_a_body_is_not_sent_to_another_origin(server: HostileServer, policy: Policy, status: int) -> None:
    with HostileServer() as other:
        with pytest.raises(Refused, match="was not sent there"):
            url = f"{server.url}/to{status}?{other.url}/"
            await fetch("POST", url, policy=policy.allowing(other.url), content=b"s3cret")
        assert other.requests == []


async def test_a_redirect_without_end_ends(server: HostileServer, policy: Policy) -> None:
    with pytest.raises(Refused, match="more than 5 times"):
        await fetch("GET", f"{server.url}/loop", policy=policy)
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("bomb", "larger than 100,000 bytes"),
        ("huge", "larger than 100,000 bytes"),
        ("endless", "larger than 100,000 bytes"),
        ("brotli", "compressed as 'br'"),
        ("noise", "compression is broken"),
    ],
)
async def test_what_comes_back_is_bounded(server: HostileServer, policy: Policy, path: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        await fetch("GET", f"{server.url}/{path}", policy=policy)


@pytest.mark.parametrize("path", ["half", "headers", "nonsense", "drip", "silent"])
async def test_a_peer_that_does_not_answer_properly_is_unreachable(
    server: HostileServer, policy: Policy, path: str
) -> None:
    with pytest.raises(Unreachable):
        await fetch("GET", f"{server.url}/{path}", policy=policy, timeout=1.0)


async def test_compressed_answers_are_unpacked(server: HostileServer, policy: Policy) -> None:
    answer = await fetch("GET", f"{server.url}/gzip", policy=policy)
    assert answer.text == "unpacked"
    assert "accept-encoding: gzip\r\n" in server.requests[0].lower()


async def test_only_the_wanted_types(server: HostileServer, policy: Policy) -> None:
    assert await fetch("GET", server.url, policy=policy, types=("text/",))
    with pytest.raises(Refused, match="'text/html'; expected is application/json"):
        await fetch("GET", server.url, policy=policy, types=("application/json",))


async def test_a_client_of_somebody_else_keeps_no_cookies(server: HostileServer, policy: Policy) -> None:
    async with httpx2.AsyncClient(transport=OutboundTransport(policy)) as client:
        for _ in range(2):
            answer = await client.get(server.url)
            assert "set-cookie" not in answer.headers
        assert "cookie:" not in server.requests[1].lower()
        with pytest.raises(httpx2.TransportError):
            await client.get("http://127.0.0.1:1/")


async def test_an_unknown_name_says_so(policy: Policy) -> None:
    async def nobody(host: str, port: int) -> list[str]:
        raise OSError

    transport = OutboundTransport(policy, resolve=nobody)
    with pytest.raises(Unreachable, match=r"nowhere\.example is unknown"):
        await fetch("GET", "http://nowhere.example/", policy=policy, transport=transport)


@pytest.mark.parametrize(
    "url", ["", "x", "//x", "ftp://x/", "http:///x", "http://u:p@x/", "http://x:99999/", "http://[::1"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        parse(url)


@given(st.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"http://x/{text}"):
        with contextlib.suppress(Refused):
            assert parse(url).scheme in ("http", "https")


# Paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "",
        ".",
        "..",
        "../x",
        "a/../../b",
        "..\\x",
        "%2e%2e",
        "%2E.",
        "%252e%252e%252fx",
        "%25252e%25252e",
        "..%2f",
        "a\0",
        "a%0d%0ab",
    ],
)
def test_a_value_that_leaves_its_place_in_the_path_is_refused(value: str) -> None:
    with pytest.raises(Refused):
        join_path("/api/v1", ["users", value])


def test_values_stay_in_their_segment() -> None:
    assert join_path("/api/v1/", ["users", "a/b c?d#e%20"]) == "/api/v1/users/a%2Fb%20c%3Fd%23e%2520"
    assert join_path("", ["ünï", "..."]) == "/%C3%BCn%C3%AF/..."


@given(st.lists(st.text(alphabet="ab./\\%25e?#&;\n ", min_size=1), min_size=1))
def test_no_values_lead_out_of_the_base(values: list[str]) -> None:
    try:
        path = join_path("/base", values)
    except Refused:
        return
    assert path.startswith("/base/") and path.count("/") == len(values) + 1
    assert not {".", ".."} & set(httpx2.URL(f"http://x{path}").path.split("/"))


# TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of api.example.org that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "api.example.org")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("api.example.org")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return path


async def test_tls_names_and_checks_the_host_and_not_the_address(certificate: Path) -> None:
    names: list[str | None] = []
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    tls.sni_callback = lambda _socket, name, _context: names.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with HostileServer(tls) as server:
        internet = Elsewhere(server.port)

        def transport() -> OutboundTransport:
            return OutboundTransport(Policy(), backend=internet, resolve=resolver("93.184.216.34"), tls=trusting)

        answer = await fetch("GET", "https://api.example.org/", policy=Policy(), transport=transport())
        assert (answer.text, names) == ("hello", ["api.example.org"])
        with pytest.raises(Unreachable, match="certificate"):
            await fetch("GET", "https://other.example.org/", policy=Policy(), transport=transport())
        with pytest.raises(Refused, match="without encryption"):
            url = "https://api.example.org/to302?http://api.example.org/"
            await fetch("GET", url, policy=Policy(), transport=transport())


# Nobody else ------------------------------------------------------------------------------------------------------

CLIENTS = {"httpx2", "httpcore2", "httpx", "httpcore", "requests", "aiohttp", "urllib3", "urllib.request", "websockets"}
CLIENTS |= {"http.client", "socket"}
# Who may import what opens connections, and why that leaves the process nowhere else.
KNOWN = {
    "agentapp/outbound.py": {"httpx2", "httpcore2"},
    "accounts/oidc.py": {"requests"},  # the class of its errors
    "accounts/oidc_http.py": {"requests"},  # carried by outbound
    "agentapp/addresses.py": {"socket"},  # the resolver's constants
    "conversations/worker.py": {"socket"},  # the machine's name
    "agentapp/engine/openai_model.py": {"httpx2"},  # sends through the client that it is handed
    "agentapp/engine/openai_endpoint.py": {"httpx2"},  # the requests for it
    "tools_admin/checking.py": {"httpx2"},  # the names of its errors: it asks through the same clients
    "tools_admin/clients.py": {"httpx2"},  # providers' clients, made with their own transport
    "tools_admin/knowledge/embedding.py": {"httpx2"},  # the name of an error: it asks through providers' clients
    "conversations/webhooks/delivery.py": {"httpx2"},  # a client over our transport, whose answer it reads in part
    "tools_admin/connectors/builtin/web_page.py": {"httpx2"},  # the type of an answer
    "tools_admin/connectors/mcp/failures.py": {"httpx2"},  # the type of an error
    "tools_admin/connectors/mcp/http.py": {"httpx2"},  # the client that the SDK wants, over our transport
    "tools_admin/gathering.py": {
        "httpx2",
        "aiohttp",
        "socket",
    },  # that transport: it connects where providers are, and follows no redirect
}


def test_no_other_module_opens_connections() -> None:
    found: dict[str, set[str]] = {}
    for package in ("agentapp", "accounts", "conversations", "tools_admin"):
        for path in (ROOT / package).rglob("*.py"):
            imported = CLIENTS & set(_imports(ast.parse(path.read_text())))
            if imported:
                found[path.relative_to(ROOT).as_posix()] = imported
    # The embedded parts talk to their own children on loopback.
    strangers = {name: what for name, what in found.items() if not name.startswith("agentapp/embedded/")}
    assert {name: what for name, what in strangers.items() if not what <= KNOWN.get(name, set())} == {}


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from (alias.name, alias.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (node.module, node.module.split(".")[0])
