"""What pages ask about people."""

from typing import Any

from django import template
from django.conf import settings

from accounts.roles import may_enter_admin

register = template.Library()


@register.filter
def enters_admin(user: Any) -> bool:
    """Whether the page offers a way into the admin."""
    return may_enter_admin(user)


@register.simple_tag
def sign_in_elsewhere() -> str:
    """What stands on the button of single sign-on; empty without one."""
    apps = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"]
    return str(apps[0]["name"]) if apps else ""
