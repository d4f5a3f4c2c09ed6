"""All addresses of the site, in one view."""

from django.contrib import admin
from django.urls import include, path
from django.views.i18n import JavaScriptCatalog

from agentapp.api import api, docs
from agentapp.openai_api import api as openai_api
from conversations.health import healthz, readyz
from conversations.health_page import health_page

admin.autodiscover()
urlpatterns = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("api/v1/docs", docs, name="api_docs"),
    path("api/v1/", api.urls),
    path("v1/", openai_api.urls),
    path("admin/health/", admin.site.admin_view(health_page), name="admin_health"),
    path("admin/", admin.site.urls),
    path("jsi18n/", JavaScriptCatalog.as_view(), name="jsi18n"),
    path("", include("accounts.urls")),
    path("", include("tools_admin.urls")),
    path("", include("conversations.urls")),
]
