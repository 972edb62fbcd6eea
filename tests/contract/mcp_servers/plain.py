"""An MCP server of the older protocol in plain JSON-RPC: it starts in no time, and misbehaves as told.

    plain.py [MANNER …]

A request that it does not want to answer is simply left; the next one is read all the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MANNERS = set(sys.argv[1:])
HOLD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('held', flush=True); time.sleep(600)"


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}, **more}


ORDER = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
        },
        "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["items"],
    "additionalProperties": False,
}
DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
SCHEMAS: dict[str, Any] = {
    "order": ORDER,
    "endless": {"type": "object", "$ref": "#"},
    "doubling": {"type": "object", "$ref": "#/$defs/d0", "$defs": DOUBLING | {"d60": {"type": "object"}}},
    "elsewhere": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/never-fetched.json"}}},
    "broken": {"type": "object", "required": ["b"], "properties": {"a": {"type": 7}}},
    "slow_pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "draft4": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {"n": {"type": "number", "minimum": 3, "exclusiveMinimum": True}},
    },
}


def tools() -> list[dict[str, Any]]:
    return [
        tool("echo"),
        tool("farewell"),
        tool("look", annotations={"readOnlyHint": True}),
        tool("touch", annotations={"readOnlyHint": False}),
        *map(tool, SPECIAL),
        *(tool(name, inputSchema=schema) for name, schema in SCHEMAS.items()),
    ]


def listing(params: dict[str, Any]) -> dict[str, Any]:
    if "describes-from-file" in MANNERS:
        return {"tools": [tool("echo", description=Path("description").read_text())]}
    if "pages" in MANNERS:
        page = int(params.get("cursor", "0"))
        return {"tools": [tool(f"t{page}")], **({"nextCursor": str(page + 1)} if page < 4 else {})}
    if "pages-for-ever" in MANNERS:
        page = int(params.get("cursor", "0"))
        if page == 10:
            raise LookupError("no page but these was needed")
        return {"tools": [tool(f"t{page * 100 + n}") for n in range(100)], "nextCursor": str(page + 1)}
    if "empty-pages" in MANNERS:
        return {"tools": [], "nextCursor": "more"}
    if "hostile" in MANNERS:
        deep: Any = {}
        for _ in range(50):
            deep = {"properties": {"a": deep}}
        return {
            "tools": [
                tool("a.b"),
                tool("a b", description="\x1b]0;owned\x07\u202eright to left"),
                tool("a_b"),
                tool("a_b"),
                tool("\x00\x1b" + "n" * 300),
                tool("\x00\x1b" + "n" * 300 + "!"),
                tool(""),
                tool("much", description="x" * 10_000_000),
                tool(
                    "wide",
                    inputSchema={"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}},
                ),
                tool("deep", inputSchema={"type": "object", **deep}),
            ]
        }
    return {"tools": tools()}


def text(value: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(value)}]}


def die() -> None:
    print("loading\nout of cheese, token", os.environ.get("TOKEN", ""), "\x1b[31m", file=sys.stderr, flush=True)
    os._exit(3)


def quit_behind_child() -> None:
    subprocess.Popen([sys.executable, "-c", HOLD])
    os._exit(4)


def child() -> dict[str, Any]:
    held = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE)
    assert held.stdout
    held.stdout.readline()
    return text(held.pid)


def refuse() -> None:
    raise LookupError("not today")


BLOB = {"uri": "file:///b", "mimeType": "a/b", "blob": "AAAA"}
PICTURES = {
    "content": [
        {"type": "text", "text": "one"},
        {"type": "image", "mimeType": "image/png", "data": "AAAAAA=="},
        {"type": "audio", "mimeType": "audio/wav\x1b", "data": "AAAA"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "resource", "resource": {"uri": "file:///y", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": BLOB},
    ]
}

SPECIAL: dict[str, Callable[[], dict[str, Any] | None]] = {
    "hang": lambda: None,
    "die": die,
    "quit_behind_child": quit_behind_child,
    "child": child,
    "env": lambda: text(json.dumps(dict(os.environ))),
    "freeze": lambda: time.sleep(600),
    "fail": lambda: {**text("no such \x1b[31mcheese, " + os.environ.get("TOKEN", "")), "isError": True},
    "refuse": refuse,
    "nonsense": lambda: {"content": "nonsense"},
    "pictures": lambda: PICTURES,
}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    if name in SPECIAL:
        return SPECIAL[name]()
    if "value" in arguments:
        return {**text("as text"), "structuredContent": {"value": arguments["value"]}}
    return text(os.getpid())


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "plain", "version": "1"},
            }
        case "tools/list":
            return None if "never-lists" in MANNERS else listing(params)
        case "tools/call":
            return call(params["name"], params.get("arguments", {}))
    raise LookupError(method)


def settle_in() -> None:
    """Whatever happens before the first message is read."""
    if "starts" in MANNERS:
        with Path("starts").open("a") as starts:
            starts.write(f"{os.getpid()}\n")
    if "stubborn" in MANNERS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "greets" in MANNERS:
        print("Welcome to the cheese shop!\n\n{not json}", flush=True)
        print("More than fits into a pipe. " * 10_000, file=sys.stderr, flush=True)
    while "babbles" in MANNERS:
        print("cheese " * 1000, flush=True)
    if "fails-at-start" in MANNERS:
        sys.exit("no licence")
    if "silent" in MANNERS:
        print("thinking", file=sys.stderr, flush=True)
        time.sleep(600)


def reply(message: dict[str, Any]) -> None:
    head = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        result = answer(message["method"], message.get("params", {}))
    except LookupError as error:
        # The code that the SDK uses for a connection that closed.
        print(json.dumps({**head, "error": {"code": -32000, "message": error.args[0]}}), flush=True)
    else:
        lines = [] if result is None else [json.dumps({**head, "result": result})]
        leaves = message.get("params", {}).get("name") == "farewell"
        if leaves:
            lines = [json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})] * 1_000 + lines
        print(*lines, sep="\n", end="\n" if lines else "", flush=True)
        if leaves:
            os._exit(0)


def main() -> None:
    settle_in()
    for line in sys.stdin:
        message = json.loads(line)
        if "strict" in MANNERS and message["method"] == "server/discover":
            sys.exit("expected initialize")
        if "id" in message:
            reply(message)
    if "stubborn" in MANNERS:
        time.sleep(600)


main()
