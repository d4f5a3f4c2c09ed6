"""Every setting. What may be set from outside comes from `agentapp.environment`."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from csp.constants import NONCE

from agentapp.admin_look import UNFOLD as UNFOLD
from agentapp.environment import BASE_DIR, VAR_DIR, celery_url, database, oidc_group_map, read_environment

env = read_environment()


SECRET_KEY = env.secret_key
ENCRYPTION_KEYS = [key.strip() for key in env.encryption_keys.split(",") if key.strip()]
DEBUG = env.debug
ALLOWED_HOSTS = [host.strip() for host in env.allowed_hosts.split(",") if host.strip()]
PUBLIC_URL = env.public_url.rstrip("/")
if PUBLIC_URL:
    CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
    ALLOWED_HOSTS.append(urlsplit(PUBLIC_URL).hostname or "")

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "agentapp.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "agentapp.apps.SocialAccountConfig",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "channels",
    "csp",
    "agentapp.apps.AgentAppConfig",
    "accounts",
    "tools_admin",
    "conversations",
]

MIDDLEWARE = [
    "servestatic.middleware.ServeStaticMiddleware",
    "agentapp.middleware.RequestIdMiddleware",
    "agentapp.in_loop.Security",
    "agentapp.in_loop.Sessions",
    "agentapp.in_loop.Locale",
    "agentapp.in_loop.Common",
    "agentapp.in_loop.ContentPolicy",
    "agentapp.middleware.AdminCSPMiddleware",
    "agentapp.middleware.UnavailableMiddleware",
    "agentapp.in_loop.Csrf",
    "agentapp.in_loop.Authentication",
    "accounts.middleware.PreferencesMiddleware",
    "agentapp.in_loop.Messages",
    "agentapp.in_loop.Frames",
    "allauth.account.middleware.AccountMiddleware",
]
# `check --deploy` looks for Django's own by name, not for what is made of them.
SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002", "security.W003"]

ROOT_URLCONF = "agentapp.urls"
ASGI_APPLICATION = "agentapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
            "builtins": ["django.templatetags.i18n", "django.templatetags.static"],
        },
    }
]

DATABASES = {"default": database(env.database_url)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.redis_url
CELERY_BROKER_URL = celery_url(env.redis_url)
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": env.redis_url}}
SESSION_ENGINE = "django.contrib.sessions.backends.db"

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend", "accounts.roles.RolesBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "account_login"

# Sign-up is closed: accounts are made by an administrator (accounts.adapter).
ACCOUNT_ADAPTER = "accounts.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"  # addresses are the administrators' to change
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_METHODS = ("password", "mfa")
INVITATION_DAYS = env.invitation_days

MFA_ADAPTER = "accounts.adapter.SecondFactorAdapter"
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_TOTP_ISSUER = "agentapp"
MFA_TOTP_TOLERANCE = 1  # clocks of phones are up to half a minute off

# Sign-in by OpenID Connect: one issuer, which the environment names (accounts.oidc).
OIDC_ISSUER = env.oidc_issuer.rstrip("/")
OIDC_SIGNUP = env.oidc_signup
OIDC_GROUPS_CLAIM = env.oidc_groups_claim
OIDC_GROUP_MAP = oidc_group_map(env.oidc_group_map)
SOCIALACCOUNT_ADAPTER = "accounts.oidc.OidcAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False  # an address is no proof of being somebody
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_REAUTHENTICATION_REQUIRED = True
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {
    "openid_connect": {
        "provider_class": "accounts.oidc.OidcProvider",
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": env.oidc_name,
                "client_id": env.oidc_client_id,
                "secret": env.oidc_client_secret,
                "settings": {"server_url": OIDC_ISSUER, "scope": env.oidc_scope.split()},
            }
        ]
        if OIDC_ISSUER
        else [],
    }
}

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = False  # the page's scripts read it to send X-CSRFToken
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Rate limits of sign-in count addresses: with PUBLIC_URL the last proxy's X-Forwarded-For tells them.
ALLAUTH_TRUSTED_PROXY_COUNT = 1 if PUBLIC_URL else 0
if PUBLIC_URL.startswith("https://"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000

_SELF = "'self'"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": [_SELF, NONCE],
        "style-src": [_SELF],
        "font-src": [_SELF],
        "img-src": [_SELF, "data:"],
        "connect-src": [_SELF],
        "frame-src": [_SELF],  # previews of files, which are locked by their own policy
        "manifest-src": [_SELF],
        "form-action": [_SELF],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

LANGUAGE_CODE = env.language_code
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.time_zone

NODE_MODULES = BASE_DIR / "node_modules"
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "var" / "static"  # built from the checkout, whatever VAR_DIR says
STATICFILES_DIRS = [
    (f"vendor/{name}", NODE_MODULES / folder)
    for name, folder in {
        "marked": "marked/lib",
        "dompurify": "dompurify/dist",
        "highlight": "@highlightjs/cdn-assets/es",
        "inter": "@fontsource-variable/inter",
        "jetbrains-mono": "@fontsource-variable/jetbrains-mono",
    }.items()
    if (NODE_MODULES / folder).is_dir()
]
# django-ninja brings Swagger UI for the page of the API; importing it would read these settings.
STATICFILES_DIRS.append(("vendor/swagger", Path(find_spec("ninja").origin).parent / "static" / "ninja"))  # type: ignore[union-attr, arg-type]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"},
}
MEDIA_ROOT = VAR_DIR / "media"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

if env.email_url:
    _mail = urlsplit(env.email_url)
    EMAIL_HOST, EMAIL_PORT = _mail.hostname or "", _mail.port or 587
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_mail.username or ""), unquote(_mail.password or "")
    EMAIL_USE_TLS = parse_qs(_mail.query).get("tls") == ["1"]
else:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
DEFAULT_FROM_EMAIL = env.default_from_email

# Settings of the life of a run (see conversations/).
RUN_LEASE_SECONDS = env.run_lease_seconds
RUN_HEARTBEAT_SECONDS = env.run_heartbeat_seconds
SWEEP_SECONDS = env.sweep_seconds
QUEUED_AGE_SECONDS = env.queued_age_seconds
MODEL_PAUSE_SECONDS = env.model_pause_seconds
RUN_DEADLINE_DAYS = env.run_deadline_days
APPROVAL_DAYS = env.approval_days
SHUTDOWN_GRACE_SECONDS = env.shutdown_grace_seconds
MAX_MESSAGE_CHARS = env.max_message_chars
MAX_ATTACHMENT_BYTES = env.max_attachment_mb * 1_000_000
ATTACHMENT_QUOTA_BYTES = env.attachment_quota_mb * 1_000_000
MAX_RUNNING_RUNS = env.max_running_runs

CURRENCY = env.currency
RATE_REQUESTS, RATE_MESSAGES = env.rate_requests, env.rate_messages
CRASH_AT = env.crash_at
MCP_COMMANDS = env.mcp_commands
SQL_FILES = Path(env.sql_files or VAR_DIR / "databases")
SQL_DIALECTS = env.sql_dialects

# Models that the environment names become locked entries (tools_admin.services.sync_environment).
OPENAI_BASE_URL = env.openai_base_url or ("https://api.openai.com/v1" if env.openai_api_key else "")
OPENAI_API_KEY = env.openai_api_key
OPENAI_MODEL = env.openai_model
DEMO_MODEL = env.demo_model
DEMO_MODEL_URL = env.demo_model_url
DEMO_MODEL_KEY = env.demo_model_key

# Hosts of the inner network that tools may reach (agentapp.outbound), beside those that a connector's form allows.
OUTBOUND_ALLOWED_HOSTS = frozenset(h.strip().lower() for h in env.outbound_allowed_hosts.split(",") if h.strip())

EMBEDDED_BEAT = env.embedded_beat

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"}},
    "filters": {"request": {"()": "agentapp.request_log.RequestIdFilter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        name: {"level": "WARNING"}
        for name in ("httpx2", "daphne", "celery.beat", "celery.app.trace", "celery.worker.strategy")
    },
}
