"""What a page needs from the front end: icons and the import map of its modules."""

import json
from functools import cache
from pathlib import Path

from django import template
from django.apps import apps
from django.conf import settings
from django.template.context import Context
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

ICON_SET = "@iconify-json/lucide/icons.json"
# fmt: off
ICONS = (
    "activity", "archive", "archive-restore", "arrow-down", "arrow-left", "arrow-right", "arrow-up", "book-open",
    "bot", "briefcase", "chart-column", "check", "chevron-down", "chevron-left", "chevron-right", "circle-alert",
    "circle-check", "circle-dashed", "circle-help", "circle-slash", "circle-stop", "circle-x", "clock", "code",
    "copy", "database", "download", "ellipsis", "file-text", "gauge", "git-branch", "globe", "hand", "info",
    "key-round", "life-buoy", "list-tree", "loader-circle", "log-out", "mail", "menu", "message-square", "monitor",
    "moon", "paperclip", "pen-line", "pencil", "pin", "pin-off", "plug", "refresh-cw", "rotate-ccw", "scale",
    "search", "settings", "shrink", "square", "square-pen", "sun", "thumbs-down", "thumbs-up", "trash",
    "triangle-alert", "undo-2", "upload", "user", "waypoints", "wifi-off", "wrench", "x",
)
# fmt: on

# Bare names of npm packages and our own folders of modules, as scripts import them.
LIBRARIES = {
    "marked": "vendor/marked/marked.esm.js",
    "dompurify": "vendor/dompurify/purify.es.mjs",
    "@highlightjs/cdn-assets/es/highlight.min.js": "vendor/highlight/highlight.min.js",
}
LAZY = {"@highlightjs/cdn-assets/es/highlight.min.js"}  # loaded when a page needs it
MODULES = {"#app/": ("agentapp", "agentapp/js"), "#chat/": ("conversations", "conversations")}


@cache
def icon_bodies() -> dict[str, str]:
    """SVG bodies of the icons we use; none where the front-end libraries are not installed: pages keep their words."""
    path = Path(settings.NODE_MODULES) / ICON_SET
    if not path.is_file():
        return {}
    icons = json.loads(path.read_text())
    aliases = icons.get("aliases", {})
    return {name: icons["icons"][aliases.get(name, {}).get("parent", name)]["body"] for name in ICONS}


@register.simple_tag
def icon_sprite() -> SafeString:
    """The page's icons as symbols, once at the top of the body; scripts use them too."""
    symbols = (
        (name, mark_safe(body))  # noqa: S308 (from the pinned icon package)
        for name, body in icon_bodies().items()
    )
    return format_html(
        '<svg class="icon-sprite" aria-hidden="true" width="0" height="0">{}</svg>',
        format_html_join("", '<symbol id="icon-{}" viewBox="0 0 24 24">{}</symbol>', symbols),
    )


@register.simple_tag
def icon(name: str) -> SafeString:
    """An icon beside words; a button without words needs an `aria-label`."""
    if name not in ICONS:
        raise template.TemplateSyntaxError(f"Unknown icon {name!r}: add it to ICONS.")
    return format_html('<svg class="icon" aria-hidden="true"><use href="#icon-{}"></use></svg>', name)


@cache
def import_map() -> dict[str, str]:
    """Specifier → address with its content hash."""
    own = {
        f"{prefix}{file.name}": f"{folder}/{file.name}"
        for prefix, (app, folder) in MODULES.items()
        for file in sorted((Path(apps.get_app_config(app).path) / "static" / folder).glob("*.js"))
    }
    return {name: static(path) for name, path in (LIBRARIES | own).items()}


@register.simple_tag(takes_context=True)
def module_scripts(context: Context, entry: str, *, preload: bool = False) -> SafeString:
    """The import map and the page's entry module; `preload` for an entry that needs all modules anyway."""
    addresses = import_map() if not settings.DEBUG else import_map.__wrapped__()
    # The map holds our own file names only; `<` could end the script early and is escaped all the same.
    text = mark_safe(json.dumps({"imports": addresses}).replace("<", "\\u003c"))  # noqa: S308
    links = ((address,) for name, address in addresses.items() if preload and name not in LAZY)
    return format_html(
        '<script type="importmap" nonce="{}">{}</script>{}<script type="module" src="{}"></script>',
        context.get("CSP_NONCE", ""),
        text,
        format_html_join("", '<link rel="modulepreload" href="{}">', links),
        addresses[entry],
    )
