"""The admin's entrance: the site's own sign-in, for whoever finds something behind it."""

from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from unfold.sites import UnfoldAdminSite

from accounts.roles import may_enter_admin


class AdminSite(UnfoldAdminSite):  # type: ignore[misc]
    def has_permission(self, request: HttpRequest) -> bool:
        return may_enter_admin(request.user)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Signing in to the admin is signing in to the site: one page, one second factor, one rate limit."""
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
