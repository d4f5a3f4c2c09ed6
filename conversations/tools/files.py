import mimetypes
import re

from tools_admin.connectors.base import ToolError

# Texts only: a model writes no other files.
_TEXTS = {".md": "text/markdown", ".csv": "text/csv", ".json": "application/json", ".svg": ""}


def kind_of_file(filename: str) -> tuple[str, str]:
    """A name without a path, and its type; raises `ToolError` for files that are not text."""
    name = re.sub(r"[\x00-\x1f\x7f]", "", filename.replace("\\", "/").rpartition("/")[2]).strip(" .")
    ending = "." + name.rpartition(".")[2].lower() if "." in name else ""
    kind = _TEXTS.get(ending, mimetypes.types_map.get(ending, "text/plain" if ending in ("", ".log") else ""))
    if not name or not (kind.startswith("text/") or kind in ("application/json", "application/xml")):
        raise ToolError(
            f"{filename[:120]!r} is no name of a text file. Use an ending such as .txt, .md, .csv or .html."
        )
    return name[:120], kind
