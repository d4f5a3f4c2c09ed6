"""Who may do what besides chatting: five permissions, handed out by groups.

A role is an ordinary group. The installation starts with one for each permission and one with all of them;
administrators rename, change and add to them as they like.
"""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import Group, Permission
from django.db.models import Q, QuerySet
from django.utils import translation
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop as noop

from accounts.models import User

MANAGE_PEOPLE = "accounts.manage_people"
CONFIGURE = "accounts.configure"
APPROVE = "accounts.approve"
VIEW_ALL_RUNS = "conversations.view_all_runs"
VIEW_INSPECTIONS = "conversations.view_inspection"

# Implied by `configure`; groups that edit certain agents get it with them.
EDIT_AGENTS = "tools_admin.edit_agents"

# Each opens pages of the admin.
PERMISSIONS = (MANAGE_PEOPLE, CONFIGURE, APPROVE, VIEW_ALL_RUNS, VIEW_INSPECTIONS)

# In the words of the pages where they are given.
WORDS = {
    MANAGE_PEOPLE: _("Manages people: accounts, invitations, groups, API keys, budgets"),
    CONFIGURE: _("Configures systems, models, tools and agents"),
    APPROVE: _("Decides on calls of other people's runs that wait for approval"),
    VIEW_ALL_RUNS: _("Looks at everybody's runs; each look is recorded"),
    VIEW_INSPECTIONS: _("Sees who looked at whose run"),
}

# Name of the group → what its members may do.
DEFAULT_ROLES = {
    noop("Administrators"): PERMISSIONS,
    noop("Configuration"): (CONFIGURE,),
    noop("People managers"): (MANAGE_PEOPLE,),
    noop("Approvers"): (APPROVE,),
    noop("Auditors"): (VIEW_ALL_RUNS, VIEW_INSPECTIONS),
    noop("Members"): (),
}


class RolesBackend(BaseBackend):
    """Django keeps four permissions for each table; ours imply those of whole apps: new tables need no new grant."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        app, _, codename = perm.partition(".")
        return obj is None and perm not in PERMISSIONS and self._implied(user_obj, app, codename)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        return self._implied(user_obj, app_label, "group")

    def _implied(self, user: Any, app: str, codename: str) -> bool:
        if app == "tools_admin":
            return bool(user.is_active and user.has_perm(CONFIGURE))
        if app == "accounts" or (app == "auth" and codename.endswith("group")):
            return bool(user.is_active and user.has_perm(MANAGE_PEOPLE))
        return False


def may_enter_admin(user: Any) -> bool:
    """Whoever finds something there. `is_staff` alone opens an empty page that says so."""
    return bool(user.is_active and (user.is_staff or any(user.has_perm(name) for name in (*PERMISSIONS, EDIT_AGENTS))))


def is_above(user: Any, other: User) -> bool:
    """Whether `other` may do nothing that `user` may not: only then their password or address is the user's to change.

    Somebody else's password in one's hands is their rights in one's hands.
    """
    if user.is_superuser:
        return True
    return not other.is_superuser and not _rights(other).exclude(pk__in=_rights(user).values("pk")).exists()


def groups_within(user: Any) -> QuerySet[Group]:
    """The groups that a person may hand out: those that give nothing which that person does not have."""
    if user.is_superuser:
        return Group.objects.all()
    return Group.objects.exclude(permissions__in=Permission.objects.exclude(pk__in=_rights(user).values("pk")))


def _rights(user: Any) -> QuerySet[Permission]:
    """Those that a person was given. Somebody disabled has them again as soon as they are enabled."""
    return Permission.objects.filter(Q(group__user=user) | Q(user=user))


def permissions_called(names: Iterable[str]) -> QuerySet[Permission]:
    """The rows of permissions named `app.codename`."""
    condition = Q(pk=None)
    for name in names:
        app, _dot, codename = name.partition(".")
        condition |= Q(content_type__app_label=app, codename=codename)
    return Permission.objects.filter(condition).select_related("content_type")


def words_for(permission: Permission) -> str:
    """What a permission allows; `content_type` is loaded."""
    return str(WORDS.get(f"{permission.content_type.app_label}.{permission.codename}", permission.name))


def seed_roles() -> None:
    """Makes the default groups, in the site's language, where there is no group at all."""
    if Group.objects.exists():
        return
    with translation.override(settings.LANGUAGE_CODE):
        for name, permissions in DEFAULT_ROLES.items():
            Group.objects.create(name=translation.gettext(name)).permissions.set(permissions_called(permissions))
