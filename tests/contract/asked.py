"""What a scripted server was asked, whatever the wire: in pieces that can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from tests.contract.scripted_http import Asked

CALL: Final = "call"
RESULT: Final = "result"
REASONING: Final = "reasoning"
STATE: Final = "<state>"


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, a call or a result, in the order in which the model reads them."""

    role: str
    kind: str
    text: str
    """What was said; of calls and results, their id."""
    written: str
    """All of it, as it was sent."""


def head(asked: Asked) -> str:
    """All that stands before the conversation: the system prompt, the tools, the settings."""
    body = {key: value for key, value in asked.body.items() if key not in ("messages", "input")}
    system = [message for message in _messages(asked) if message.get("role") in ("system", "developer")]
    return json.dumps([body, system])


def pieces(asked: Asked) -> list[Piece]:
    return [
        piece for message in _messages(asked) for piece in _of(message) if piece.role not in ("system", "developer")
    ]


def _messages(asked: Asked) -> Sequence[dict[str, Any]]:
    found: Sequence[dict[str, Any]] = asked.body["input" if "input" in asked.body else "messages"]
    return found


def _of(message: dict[str, Any]) -> Iterator[Piece]:
    role, content = message.get("role", message.get("type", "")), message.get("content")
    match message:
        case {"role": "tool", "tool_call_id": id} | {"type": "function_call_output", "call_id": id}:
            yield Piece(role, RESULT, id, json.dumps(message))
            return
        case {"type": "function_call", "call_id": id}:
            yield Piece(role, CALL, id, json.dumps(message))
            return
        case {"type": "reasoning", "id": id}:
            yield Piece(role, REASONING, id, json.dumps(message))
            return
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        # Where a provider may cut what it keeps is no part of what it reads.
        written = json.dumps({key: value for key, value in block.items() if key != "cache_control"})
        match block:
            case {"type": "tool_use", "id": id}:
                yield Piece(role, CALL, id, written)
            case {"type": "tool_result", "tool_use_id": id}:
                yield Piece(role, RESULT, id, written)
            case {"type": "thinking", "thinking": text}:
                yield Piece(role, REASONING, text, written)
            case _:
                yield Piece(role, "text", block["text"], written)
    for call in message.get("tool_calls") or ():
        yield Piece(role, CALL, call["id"], json.dumps(call))


def problems(asked: Asked) -> list[str]:
    """What a provider would refuse: a call without its one result right after it, an empty text, a broken order."""
    found: list[str] = []
    calls: set[str] = set()
    waits: list[str] = []
    for piece in pieces(asked):
        match piece.kind:
            case "call":
                if piece.text in calls:
                    found.append(f"two calls {piece.text}")
                calls.add(piece.text)
                waits.append(piece.text)
            case "result" if piece.text in waits:
                waits.remove(piece.text)
            case "result":
                found.append(f"the result of {piece.text} answers no open call")
            case _:
                if not piece.text.strip():
                    found.append(f"an empty text of {piece.role}")
                if waits:
                    found.append(f"a text before the results of {waits}")
    return [*found, *(f"no result for {id}" for id in waits)]


def changes(asked: Sequence[Asked]) -> list[str]:
    """Where a request does not begin as the one before it did: only the state, at its end, may differ."""
    found: list[str] = []
    for number, (before, after) in enumerate(pairwise(asked), start=1):
        if head(before) != head(after):
            found.append(f"request {number + 1} has another head")
        kept = [piece.written for piece in pieces(before)]
        if kept and pieces(before)[-1].text.startswith(STATE):
            kept.pop()
        if [piece.written for piece in pieces(after)][: len(kept)] != kept:
            found.append(f"request {number + 1} does not begin as request {number} did")
    return found
