"""How the admin looks: the product's colours, and a menu grouped by what people do."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _

# The deep teal of the pages (#0b6a62) is step 600, which buttons and links use; the greys carry a trace of it.
_TEAL = {
    "50": "oklch(97.6% .014 185)",
    "100": "oklch(94.4% .03 185)",
    "200": "oklch(89% .055 185)",
    "300": "oklch(82% .08 185)",
    "400": "oklch(74% .095 185)",
    "500": "oklch(66% .1 185)",
    "600": "oklch(47.2% .081 185)",
    "700": "oklch(41.5% .071 185)",
    "800": "oklch(36% .06 185)",
    "900": "oklch(31% .05 185)",
    "950": "oklch(23% .036 185)",
}
_GREY = {
    "50": "oklch(98.2% .003 185)",
    "100": "oklch(96.2% .005 185)",
    "200": "oklch(92% .008 185)",
    "300": "oklch(86.5% .011 185)",
    "400": "oklch(71% .016 185)",
    "500": "oklch(53% .018 185)",
    "600": "oklch(44% .019 185)",
    "700": "oklch(36.5% .019 185)",
    "800": "oklch(28% .017 185)",
    "900": "oklch(21% .014 185)",
    "950": "oklch(15.5% .011 185)",
}


def _page(title: Any, icon: str, model: str, permission: str) -> dict[str, Any]:
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{model}_changelist"),
        "permission": _holds(permission),
    }


def _holds(permission: str) -> Callable[[HttpRequest], bool]:
    return lambda request: request.user.has_perm(permission)


UNFOLD = {
    "SITE_TITLE": _("Administration"),
    "SITE_HEADER": _("Administration"),
    "SITE_SYMBOL": "forum",
    "SITE_URL": "/",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("agentapp/icon.svg")}],
    "DASHBOARD_CALLBACK": "conversations.dashboard.dashboard",
    "STYLES": [lambda request: static("agentapp/css/admin.css")],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "8px",
    "COLORS": {"base": _GREY, "primary": _TEAL},
    "ACCOUNT": {
        "navigation": [{"title": _("Back to the chat"), "link": "/"}],
    },
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": [
            {
                "title": _("Connect systems"),
                "items": [
                    _page(_("Connectors"), "hub", "tools_admin_connector", "tools_admin.view_connector"),
                    _page(_("Tools"), "build", "tools_admin_tool", "tools_admin.view_tool"),
                    _page(
                        _("Documents"),
                        "library_books",
                        "tools_admin_knowledgedocument",
                        "tools_admin.view_knowledgedocument",
                    ),
                ],
            },
            {
                "title": _("Models and routing"),
                "items": [
                    _page(_("Providers"), "dns", "tools_admin_provider", "tools_admin.view_provider"),
                    _page(_("Models"), "neurology", "tools_admin_languagemodel", "tools_admin.view_languagemodel"),
                    _page(_("Routes"), "alt_route", "tools_admin_route", "tools_admin.view_route"),
                ],
            },
            {
                "title": _("Agents"),
                "items": [
                    _page(_("Agents"), "support_agent", "tools_admin_agent", "tools_admin.edit_agents"),
                    _page(_("Agents' budgets"), "wallet", "tools_admin_agentbudget", "tools_admin.view_agentbudget"),
                    _page(_("Comparisons"), "compare_arrows", "conversations_comparison", "accounts.configure"),
                ],
            },
            {
                "title": _("People"),
                "items": [
                    _page(_("Users"), "person", "accounts_user", "accounts.view_user"),
                    _page(_("Groups"), "group", "auth_group", "auth.view_group"),
                    _page(_("Invitations"), "mail", "accounts_invitation", "accounts.view_invitation"),
                    _page(_("API keys"), "key", "accounts_apikey", "accounts.view_apikey"),
                    _page(_("Budgets"), "account_balance_wallet", "accounts_budget", "accounts.view_budget"),
                ],
            },
            {
                "title": _("Record"),
                "items": [
                    _page(_("Runs"), "history", "conversations_run", "conversations.view_all_runs"),
                    _page(_("Calls"), "receipt_long", "conversations_call", "conversations.view_all_runs"),
                    _page(_("Unknown outcomes"), "help", "conversations_doubt", "accounts.approve"),
                    _page(_("Settled calls"), "task_alt", "conversations_settlement", "conversations.view_all_runs"),
                    _page(_("Inspections"), "visibility", "conversations_inspection", "conversations.view_inspection"),
                ],
            },
            {
                "title": _("This installation"),
                "items": [
                    {
                        "title": _("Health"),
                        "icon": "monitor_heart",
                        "link": reverse_lazy("admin_health"),
                        "permission": _holds("accounts.configure"),
                    },
                    _page(_("Webhooks"), "webhook", "conversations_webhook", "accounts.configure"),
                    _page(_("Deliveries"), "outgoing_mail", "conversations_delivery", "accounts.configure"),
                ],
            },
        ],
    },
}
