"""Converts the messages of a turn between the form in storage and the form for models.

A reply is stored before its calls run, with the ids under which the scheduler runs them, so that after a
crash each call finds its result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from punchlist.agent.message_kinds import CONTINUATION, ENDING, REMINDER, REPLY, RESULT, RESUMED, TEXT
from punchlist.conversations.model import Message as Stored
from punchlist.conversations.model import MessageRole, NewMessage, NoticeKind
from punchlist.errors import StoreDamaged
from punchlist.kernel.json_encoder import compact_encoder
from punchlist.models.model import CallReturn, FinishReason, Message, Reply, RequestedCall, Usage, UserText

MODEL_VISIBLE: Final = frozenset(
    {TEXT, CONTINUATION, RESUMED, REMINDER, ENDING, *(notice.value for notice in NoticeKind)}
)
"""Kinds of messages that a model sees as user text."""
_ENCODE: Final = compact_encoder(ensure_ascii=False, sort_keys=False)


def to_stored(message: Message, kind: str = TEXT) -> NewMessage:
    match message:
        case UserText(text):
            return NewMessage(MessageRole.USER.value, kind, text)
        case CallReturn():
            content = {"id": message.call_id, "tool": message.tool, "text": message.text, "failed": message.failed}
            return NewMessage(MessageRole.TOOL.value, RESULT, _json(content))
        case Reply():
            return NewMessage(MessageRole.ASSISTANT.value, REPLY, _json(_reply(message)))


def _json(value: Any) -> str:
    try:
        written = _ENCODE(value)
        written.encode()
    except UnicodeEncodeError:
        # A lone surrogate, which no database accepts.
        return json.dumps(value)
    return written


def _reply(reply: Reply) -> dict[str, Any]:
    return {
        "text": reply.text,
        "calls": [{"id": call.id, "tool": call.tool, "arguments": call.arguments} for call in reply.calls],
        "finish": reply.finish.value,
        "usage": [reply.usage.input_tokens, reply.usage.output_tokens],
    }


def from_stored(row: Stored) -> Message | None:
    """A stored message as the model sees it; None for messages for people only."""
    try:
        if row.role == MessageRole.ASSISTANT and row.kind == REPLY:
            found = json.loads(row.content)
            calls = tuple(RequestedCall(call["id"], call["tool"], call["arguments"]) for call in found["calls"])
            return Reply(found["text"], calls, FinishReason(found["finish"]), Usage(*found["usage"]))
        if row.role == MessageRole.TOOL and row.kind == RESULT:
            found = json.loads(row.content)
            return CallReturn(found["id"], found["tool"], found["text"], found["failed"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamaged.not_as_written(f"Message {row.id!r}") from error
    if row.kind not in MODEL_VISIBLE or row.role not in (MessageRole.USER, MessageRole.SYSTEM):
        return None
    # A notice outside of any turn is marked as such, since it is not a request of a person.
    return UserText(row.content if row.turn_id is not None else f"[posted to this chat: {row.kind}]\n{row.content}")


def drop_unpaired_calls(messages: Sequence[Message]) -> list[Message]:
    """Remove calls without results and results without calls: providers reject both."""
    answered = {message.call_id for message in messages if isinstance(message, CallReturn)}
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
            case CallReturn() if message.call_id not in asked:
                continue
            case _:
                kept.append(message)
    return kept
