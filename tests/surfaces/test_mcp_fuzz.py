"""Whatever arrives on the wire: an answer, in time, and the server goes on (TRUST 19, 20)."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import SOAK
from tests.surfaces.mcp_client import WireClient

MESSAGES = 100_000 if SOAK else 3_000
METHODS = [
    "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/subscribe",
    "resources/unsubscribe", "resources/templates/list", "prompts/list", "prompts/get", "completion/complete",
    "server/discover", "subscriptions/listen", "notifications/cancelled", "", "x" * 5000,
]  # fmt: skip
TOOLS = [
    "TodoWrite",
    "create_todo",
    "list_todo",
    "start_todo",
    "wait_todo",
    "complete_todo",
    "nothing",
    "plan",
    "continue",
]
STRINGS = [
    "", "A", "\x00", "\x1b]52;c;QQ==\x07", "\ud800", "\u202e", "\u200b", "a\nb", "é" * 600, "{{", "pending", "all",
    "2026-07-28", "x" * 100_000,
]  # fmt: skip
KEYS = [
    "todos", "items", "content", "activeForm", "status", "id", "title", "context", "order", "todoId", "outcome",
    "uri", "name", "arguments", "_meta", "protocolVersion", "cursor", "requestId", "notifications",
    "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities", "inputResponses", "ref",
    "argument", "value", "request", "for", "person", "action", "result", "capabilities", "elicitation",
]  # fmt: skip


def _value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(9 if depth < 4 else 6)
    if kind < 2:
        return rng.choice(STRINGS)
    if kind < 6:
        return rng.choice([None, True, False, 0, -1, 1, 2**70, 1.5, 1e308])
    if kind < 7:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(25))]
    return {rng.choice(KEYS): _value(rng, depth + 1) for _ in range(rng.randrange(8))}


def _message(rng: random.Random) -> Any:
    params: Any = _value(rng)
    if rng.random() < 0.5:
        params = {"name": rng.choice(TOOLS), "arguments": _value(rng)}
    message = {"jsonrpc": "2.0", "id": rng.randrange(1000), "method": rng.choice(METHODS), "params": params}
    if rng.random() < 0.2:
        message[rng.choice(list(message))] = _value(rng)
    if rng.random() < 0.05:
        # An answer, to something that was asked or not.
        message = {"jsonrpc": "2.0", "id": rng.choice(["ask-1", "ask-2", 7]), "result": _value(rng)}
    if rng.random() < 0.1:
        del message[rng.choice(list(message))]
    return message if rng.random() < 0.95 else _value(rng)


def _line(rng: random.Random) -> bytes:
    if rng.random() < 0.85:
        return json.dumps(_message(rng)).encode()
    text = "".join(rng.choices(string.printable.replace("\n", "").replace("\r", ""), k=rng.randrange(200)))
    return rng.choice(
        [
            text.encode(),
            rng.randbytes(50).replace(b"\n", b""),
            b"[" * 10_000,
            b'{"a":' * 10_000,
            b"NaN",
            b"\xff\xfe",
            b"",
        ]
    )


@pytest.mark.timeout(3600 if SOAK else 120)
def test_random_messages_neither_crash_nor_hang_the_server(project: Path, environment: dict[str, str]) -> None:
    rng = random.Random(20260221)
    with WireClient(project, environment) as client:
        capabilities: dict[str, Any] = {"elicitation": {}}
        client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {}})
        client.call("TodoWrite", todos=[])
        for number in range(MESSAGES):
            client.write(_line(rng) + b"\n")
            if number % 25 == 0:
                # The answer to this one proves that all before it were dealt with.
                _wait_for(client, f"probe-{number}")
        assert client.ask("tools/list")["result"]["tools"]


def _wait_for(client: WireClient, probe: str) -> None:
    client.write(json.dumps({"jsonrpc": "2.0", "id": probe, "method": "ping"}).encode() + b"\n")
    while True:
        message = client.read(seconds=5)
        if isinstance(message, dict) and message.get("id") == probe:
            return


def test_a_message_of_20_megabytes_is_refused_and_the_next_one_answered(
    project: Path, environment: dict[str, str]
) -> None:
    with WireClient(project, environment) as client:
        client.write(b'"' + b"x" * 20_000_000 + b'"\n')
        assert "must be shorter" in client.read()["error"]["message"]
        assert client.ask("ping")["result"] == {}


@pytest.mark.spec("W1")
def test_a_content_of_10_megabytes_is_refused(project: Path, environment: dict[str, str]) -> None:
    with WireClient(project, environment) as client:
        result = client.call("TodoWrite", todos=[{"content": "x" * 10_000_000, "activeForm": "a", "status": "pending"}])
        assert result["isError"]
        assert "must be 1 to 500 characters" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}', -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":'
         b'{"io.modelcontextprotocol/protocolVersion":"2030-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}',
         -32022),
    ],
)  # fmt: skip
def test_a_malformed_request_gets_the_error_the_protocol_has_for_it(
    project: Path, environment: dict[str, str], line: bytes, code: int
) -> None:
    with WireClient(project, environment) as client:
        client.write(line + b"\n")
        assert client.read()["error"]["code"] == code
