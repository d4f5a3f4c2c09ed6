"""An MCP server that says what another one was once heard to say: `replay_server.py TRANSCRIPT`. Plain JSON lines.

A call is answered by what the recorded server answered to the same one, with its progress and its question before it.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

told = json.loads(Path(sys.argv[1]).read_text())
calls = list(told["calls"])


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def listed(kind: str, method: str, number: Any) -> dict[str, Any]:
    if isinstance(told.get(method), str) or kind not in told.get("caps", {}):
        return {"id": number, "error": {"code": -32601, "message": "Method not found"}}
    names = {"list_resources": "resources", "list_resource_templates": "resourceTemplates"}
    return {"id": number, "result": told.get(method) or {names[method]: []}}


def called(number: Any, params: dict[str, Any]) -> None:
    wanted = params["name"], params.get("arguments") or {}
    place = next((n for n, call in enumerate(calls) if (call["tool"], call["args"] or {}) == wanted), None)
    if place is None:
        say({"id": number, "error": {"code": -32602, "message": f"never heard of {wanted}"}})
        return
    call = calls.pop(place)
    for heard in call["progress"]:
        done, total, message = [*heard, None, None][:3] if isinstance(heard, list) else (heard, None, None)
        token = params.get("_meta", {}).get("progressToken")
        further = {name: value for name, value in (("total", total), ("message", message)) if value is not None}
        told_now = {"progressToken": token, "progress": done, **further}
        say({"method": "notifications/progress", "params": told_now})
    for event in call["events"]:
        if event[0] == "elicitation":
            say({"id": "question", "method": "elicitation/create", "params": event[1]})
            sys.stdin.readline()
    if "result" in call:
        say({"id": number, "result": call["result"]})
    else:
        code = re.search(r"code=(-?\d+)", call["error"][2])
        say({"id": number, "error": {"code": int(code.group(1)) if code else -32603, "message": call["error"][1]}})


for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        info = told.get("info") or {"name": told["server"], "version": "0"}
        result = {"protocolVersion": "2025-11-25", "capabilities": told["caps"], "serverInfo": info}
        say({"id": number, "result": result})
    elif method == "tools/list":
        say({"id": number, "result": {"tools": told["tools"]}})
    elif method == "tools/call":
        called(number, message["params"])
    elif method == "resources/list":
        say(listed("resources", "list_resources", number))
    elif method == "resources/templates/list":
        say(listed("resources", "list_resource_templates", number))
    elif number is not None and method:
        say({"id": number, "error": {"code": -32601, "message": "Method not found"}})
