"""What others wrote, before a model reads it: without what only we may speak with, and without what nobody sees."""

from __future__ import annotations

import re

# Terminal colours and commands; what turns or hides text; letters of the plane of tags, which only models read.
# The joiners of emoji and of Persian words stay.
_UNSEEN = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[@-Z\\-_])"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"
    r"\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_GAP = r"(?:[^\S\n]|[\u200c\u200d])*"
_BETWEEN = r"[\s\u200c\u200d]*"
_OUR_WORDS = "|".join(
    words.replace(" ", _BETWEEN) for words in ("USER INTERRUPT", "Summary of the earlier part", "A person changed")
)
_MARKERS = re.compile(rf"[\[［【〔](?={_BETWEEN}(?:{_OUR_WORDS}))", re.IGNORECASE)
# How results are handed to a model that speaks JSON; `dialects.py` writes it before each.
_OBSERVATION = re.compile(rf"^({_GAP})(Observation{_GAP}:)", re.IGNORECASE | re.MULTILINE)
# By these chat templates tell turns and roles apart, and servers of local models may take them for their own.
_TURNS = re.compile(
    r"<(?=[|｜][^<>\n]{1,60}[|｜]>|/?(?:start|end)_of_turn>|<SYS>>|</SYS>>|/?tool_(?:call|response)>|/?s>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)


def harmless(text: str) -> str:
    """The same words; a marker of ours or of a chat template is one no more."""
    text = _UNSEEN.sub("", text)
    text = _MARKERS.sub("(", text)
    text = _OBSERVATION.sub(r"\1(quoted) \2", text)
    return _TURNS.sub(lambda found: f"{found.group()} ", text)
