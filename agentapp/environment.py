"""What may be set from outside, typed, read from the environment once, and what Django makes of its addresses.

Order: the real environment (`manage.py` puts `.env` behind it), `<NAME>_FILE` secrets, then `var/env`, which the
embedded parts generate (`agentapp.embedded.environment`). Nothing else in Django's processes reads the environment.
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from limits import parse as parse_rate
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(os.environ.get("VAR_DIR") or BASE_DIR / "var").resolve()


class Environment(BaseSettings):
    """What may be set from outside. Names are the environment's, in lower case."""

    model_config = SettingsConfigDict(env_file=VAR_DIR / "env", extra="ignore", env_ignore_empty=True)

    secret_key: str = Field(min_length=32)
    encryption_keys: str = Field(min_length=44, description="Fernet keys, newest first, separated by commas")
    database_url: str
    redis_url: str
    debug: bool = False
    allowed_hosts: str = "localhost,127.0.0.1,[::1]"
    public_url: str = Field(default="", description="Where people reach the site, such as https://chat.example.org")
    language_code: str = "en"
    time_zone: str = "UTC"
    email_url: str = Field(default="", description="smtp://user:password@host:587/?tls=1; empty prints mail to the log")
    default_from_email: str = "agentapp@localhost"
    invitation_days: float = Field(default=7.0, gt=0)
    oidc_issuer: str = Field(default="", description="https://id.example.org: people may sign in with its accounts")
    oidc_client_id: str = ""
    oidc_client_secret: str = ""
    oidc_name: str = Field(default="single sign-on", description="As it stands on the button")
    oidc_scope: str = "openid profile email"
    oidc_signup: bool = Field(default=False, description="Whoever the issuer knows gets an account")
    oidc_groups_claim: str = "groups"
    oidc_group_map: str = Field(default="", description="their-group=Our group, …: membership follows at each sign-in")
    openai_base_url: str = ""
    openai_api_key: str = ""
    openai_model: str = ""
    demo_model: str = ""
    demo_model_url: str = ""
    demo_model_key: str = ""
    outbound_allowed_hosts: str = Field(default="", description="Inner hosts that tools may reach: wiki:8080,10.0.0.5")
    embedded_beat: bool = True
    run_lease_seconds: float = 9.0
    run_heartbeat_seconds: float = 3.0
    sweep_seconds: float = 5.0
    queued_age_seconds: float = 10.0
    model_pause_seconds: float = Field(default=60.0, description="How long a model that failed too often is left alone")
    run_deadline_days: float = 30.0
    approval_days: float = 7.0
    shutdown_grace_seconds: float = 20.0
    max_message_chars: int = 100_000
    max_attachment_mb: int = Field(default=25, gt=0, description="Of one file that somebody adds to a message")
    attachment_quota_mb: int = Field(default=1_000, gt=0, description="Of all such files of one person")
    sql_files: str = Field(default="", description="Folder of SQLite files that connectors may read")
    mcp_commands: dict[str, list[str]] = Field(
        default={}, description='MCP servers that may be started: {"time": ["mcp-server-time"]}'
    )
    sql_dialects: list[str] = Field(default=[], description="SQLAlchemy dialects besides PostgreSQL and SQLite; JSON")
    currency: str = Field(default="USD", max_length=8, description="What all prices are in, as it is shown: USD, €")
    max_running_runs: int = Field(default=20, ge=0, description="Of one user at once; others wait. 0: any number")
    rate_requests: str = Field(
        default="1200/minute", description="API requests of one user, or of strangers at one address; 0: any number"
    )
    rate_messages: str = Field(default="120/minute", description="Messages of one user; 0: any number")
    crash_at: str = Field(default="", description="For tests: where a process kills itself (crash_points.py)")

    @field_validator("rate_requests", "rate_messages")
    @classmethod
    def is_a_rate(cls, text: str) -> str:
        """Empty for any number; raises ValueError."""
        if text == "0":
            return ""
        parse_rate(text)
        return text


def read_environment() -> Environment:
    """Reads the environment, with `<NAME>_FILE` pointing at a file that holds the value."""
    from_files: dict[str, Any] = {}
    for name in Environment.model_fields:
        path = os.environ.get(f"{name.upper()}_FILE")
        if path and not os.environ.get(name.upper()):
            from_files[name] = Path(path).read_text().strip()
    try:
        return Environment(**from_files)
    except ValidationError as error:
        missing = ", ".join(str(e["loc"][0]).upper() for e in error.errors())
        raise ImproperlyConfigured(
            f"These settings are missing or wrong: {missing}. Run `make setup`, which generates them into var/env, "
            "or set them in the environment (see .env.example)."
        ) from None


def database(url: str) -> dict[str, Any]:
    """`postgresql://user:password@host:port/name`; a percent-encoded path as host is a socket folder."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured("DATABASE_URL must begin with postgresql://")
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    host = options.pop("host", "") or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": options.pop("port", "") or (str(parts.port) if parts.port else ""),
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        # Patience of 1 s: after an outage the next caller opens a connection, instead of waiting for a back-off.
        "OPTIONS": {
            "pool": {"min_size": 1, "max_size": 10, "timeout": 3, "reconnect_timeout": 1},
            "connect_timeout": 3,
            **options,
        },
    }


def celery_url(url: str) -> str:
    """Celery spells a Unix socket differently and gets a database of its own."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"redis+socket://{parts.path}?virtual_host=2"
    return url


def oidc_group_map(text: str) -> dict[str, str]:
    """`their-group=Our group, …`."""
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if wrong := [theirs for theirs, equals, ours in pairs if not (equals and theirs.strip() and ours.strip())]:
        raise ImproperlyConfigured(f"OIDC_GROUP_MAP must read their-group=Our group, …; not: {', '.join(wrong)}")
    return {theirs.strip(): ours.strip() for theirs, _, ours in pairs}
