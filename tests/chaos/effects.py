"""The worker with tools whose effect can be counted: each execution leaves a line in a file.

`append_*` writes at once; `hold_*` writes when the file `hold` is gone. `*_once` must never be repeated, `*_line`
may be, with its key. The line begins with the call's position; `keys` has the idempotency keys.
"""

import os
import time
from pathlib import Path

from agentapp.engine import EffectClass
from agentapp.engine.tool_batch import current_call_key
from agentapp.worker import main
from tools_admin.connectors.base import ToolSpec, idempotency_key
from tools_admin.connectors.builtin.connector import BUILTIN

FOLDER = Path(os.environ["EFFECTS_FOLDER"])
PARAMETERS = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}


def append(text: str) -> str:
    with (FOLDER / "lines").open("a") as lines:
        lines.write(f"{current_call_key()} {text}\n")
    with (FOLDER / "keys").open("a") as keys:
        keys.write(f"{idempotency_key()} {text}\n")
    return f"Wrote {text}."


def hold(text: str) -> str:
    (FOLDER / "holding").touch()
    while (FOLDER / "hold").exists():
        time.sleep(0.02)
    return append(text)


for name, function in {"append": append, "hold": hold}.items():
    for ending, effect_class in {"once": EffectClass.ONCE, "line": EffectClass.IDEMPOTENT}.items():
        spec = ToolSpec(f"{name}_{ending}", "Writes a line.", PARAMETERS, effect_class=effect_class)
        BUILTIN[spec.name] = (spec, function)

if __name__ == "__main__":
    main()
