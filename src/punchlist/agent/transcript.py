"""What is said in a turn, as it is stored and as a model is told it.

Every message is stored before anything follows from it. A reply with calls is stored with the ids
under which the scheduler runs them, so that after a crash each call finds its result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from punchlist.conversations.model import Message as Stored
from punchlist.conversations.model import MessageRole
from punchlist.errors import StoreDamaged
from punchlist.models.model import Call, Finish, Message, Reply, Returned, Said, Usage

REPLY: Final = "reply"
RESULT: Final = "result"
TEXT: Final = "text"
CONTINUATION: Final = "continuation"
REMINDER: Final = "reminder"
SUMMARY: Final = "summary"
TOLD: Final = frozenset({TEXT, CONTINUATION, REMINDER, SUMMARY})
"""Kinds that a model is told as if somebody had said them."""


def as_row(message: Message, kind: str = TEXT) -> tuple[MessageRole, str, str]:
    """Role, kind and content of a stored message."""
    match message:
        case Said(text):
            return MessageRole.USER, kind, text
        case Returned():
            told = {"id": message.call_id, "tool": message.tool, "text": message.text, "failed": message.failed}
            return MessageRole.TOOL, RESULT, json.dumps(told, ensure_ascii=False)
        case Reply():
            return MessageRole.ASSISTANT, REPLY, json.dumps(_reply(message), ensure_ascii=False)


def _reply(reply: Reply) -> dict[str, Any]:
    return {
        "text": reply.text,
        "calls": [{"id": call.id, "tool": call.tool, "arguments": call.arguments} for call in reply.calls],
        "finish": reply.finish.value,
        "usage": [reply.usage.input_tokens, reply.usage.output_tokens],
    }


def from_row(row: Stored) -> Message | None:
    """A stored message as the model is told it; None for what is for people only."""
    try:
        if row.role == MessageRole.ASSISTANT and row.kind == REPLY:
            found = json.loads(row.content)
            calls = tuple(Call(call["id"], call["tool"], call["arguments"]) for call in found["calls"])
            return Reply(found["text"], calls, Finish(found["finish"]), Usage(*found["usage"]))
        if row.role == MessageRole.TOOL and row.kind == RESULT:
            found = json.loads(row.content)
            return Returned(found["id"], found["tool"], found["text"], found["failed"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamaged.not_as_written(f"Message {row.id!r}") from error
    return Said(row.content) if row.role == MessageRole.USER and row.kind in TOLD else None


def whole(messages: Sequence[Message]) -> list[Message]:
    """Without results whose call is missing and calls whose result is: providers refuse both."""
    answered = {message.call_id for message in messages if isinstance(message, Returned)}
    asked: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        match message:
            case Reply() if not all(call.id in answered for call in message.calls):
                if message.text:
                    kept.append(Reply(message.text, (), message.finish, message.usage))
            case Reply():
                asked |= {call.id for call in message.calls}
                kept.append(message)
            case Returned() if message.call_id not in asked:
                continue
            case _:
                kept.append(message)
    return kept
