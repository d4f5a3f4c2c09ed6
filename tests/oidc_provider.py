"""An OpenID Connect provider on loopback: real HTTP, real keys, and whatever lies a test wants it to tell."""

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "agentapp-tests", "canary-oidc-client-secret"


class OidcProvider:
    """`person` are the claims of whoever signs in next. `lies` replace claims of the ID token, `info` those of user
    info, `configuration` parts of the discovery document; `signing_key` may be a stranger's."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.logins: dict[str, dict[str, str]] = {}
        self.tell_the_truth()

    def tell_the_truth(self, **person: Any) -> None:
        self.person = {"sub": "abc-123", "preferred_username": "lin", "name": "Lin Chen", **person}
        self.lies: dict[str, Any] = {}
        self.info: dict[str, Any] = {}
        self.configuration: dict[str, Any] = {}
        self.signing_key: Any = self.key
        self.algorithm = "RS256"

    def start(self) -> "OidcProvider":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            **self.configuration,
        }

    def jwks(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser goes on to: everybody is signed in here already."""
        code = secrets.token_urlsafe(8)
        self.logins[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        asked = self.logins.pop(form.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if asked is None or authorization != f"Basic {basic}":
            return None
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return None
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "exp": int(time.time()) + 300,
            "iat": int(time.time()),
            "nonce": asked["nonce"],
            **self.person,
            **self.lies,
        }
        signed = jwt.encode(claims, self.signing_key, algorithm=self.algorithm, headers={"kid": "k1"})
        return {"access_token": "an-access-token", "token_type": "Bearer", "id_token": signed}


def _handler_of(provider: OidcProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(query))
                self.end_headers()
                return
            answers = {
                "/.well-known/openid-configuration": provider.discovery,
                "/jwks": provider.jwks,
                "/userinfo": lambda: {**provider.person, **provider.info},
            }
            self._answer(answers[parts.path]() if parts.path in answers else None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._answer(provider.token(form, self.headers.get("Authorization", "")))

        def _answer(self, body: dict[str, Any] | None) -> None:
            self.send_response(200 if body is not None else 400)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body or {"error": "invalid_request"}).encode())

        def log_message(self, *arguments: Any) -> None:
            """Silence."""

    return Handler
