"""All addresses of the site, in one view."""

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import include, path
from django.views.defaults import page_not_found
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
    path("v1/docs", docs, {"document": "openai:openapi-json"}, name="openai_docs"),
    path("v1/", openai_api.urls),
    path("admin/health/", admin.site.admin_view(health_page), name="admin_health"),
    path("admin/", admin.site.urls),
    path("jsi18n/", JavaScriptCatalog.as_view(), name="jsi18n"),
    path("", include("accounts.urls")),
    path("", include("tools_admin.urls")),
    path("", include("conversations.urls")),
]


def handler404(request: HttpRequest, exception: Http404) -> HttpResponse:
    """What no address fits, such as an id that is none: to a program in the words of its API."""
    for path_of_api, programs in (("/api/v1/", api), ("/v1/", openai_api)):
        if request.path.startswith(path_of_api):
            return programs.on_exception(request, exception)
    return page_not_found(request, exception)
