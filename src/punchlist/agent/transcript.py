"""The stored messages of a turn: conversion to and from the form for models, and the log that writes them.

A reply is stored before its calls run, with the ids under which the scheduler runs them, so that after a
crash each call finds its result. The scheduler stores the result of a call with the call; the result message
is written together with the next message, which saves one transaction per iteration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.continuation import Reason
from punchlist.agent.message_kinds import (
    COMPACTION,
    CONTINUATION,
    ENDING,
    FINAL,
    GOAL,
    REMINDER,
    REPLY,
    RESULT,
    RESUMED,
    TEXT,
)
from punchlist.conversations.model import Message as StoredMessage
from punchlist.conversations.model import MessageRole, ModelCallRecord, NewMessage, NoticeKind
from punchlist.conversations.turn_writer import TurnWriter, check_content
from punchlist.errors import StoreDamaged
from punchlist.kernel.clock import Clock, timestamp
from punchlist.kernel.events import compact_encoder
from punchlist.kernel.text import one_line
from punchlist.models.model import (
    CallReturn,
    FinishReason,
    Message,
    ModelRequest,
    PartKind,
    ProviderParts,
    Reply,
    ReplyPart,
    RequestedCall,
    Usage,
    UserText,
)

if TYPE_CHECKING:
    from punchlist.storage.async_bridge import AsyncBridge
    from punchlist.toolcalls.batch_writer import BatchWriter

MODEL_VISIBLE: Final = frozenset(
    {TEXT, CONTINUATION, RESUMED, REMINDER, FINAL, ENDING, *(notice.value for notice in NoticeKind)}
)
"""Kinds of messages that a model sees as user text."""
LOOP_KINDS: Final = frozenset({CONTINUATION, RESUMED, REMINDER, FINAL, ENDING})
"""Kinds of messages that the loop writes."""
_ENCODE: Final = compact_encoder(ensure_ascii=False, sort_keys=False)
_PART_FIELDS: Final = ("length", "text", "id", "signature", "details")
RECHECK_AFTER: Final = 0.02
"""After a model request of this many seconds, the log checks whether the turn was ended meanwhile."""


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
    parts = {"parts": _parts(reply.provider_parts)} if reply.provider_parts is not None else {}
    return {
        "text": reply.text,
        "calls": [{"id": call.id, "tool": call.tool, "arguments": call.arguments} for call in reply.calls],
        "finish": reply.finish.value,
        "usage": _tokens(reply.usage),
        **parts,
    }


def _parts(written: ProviderParts) -> dict[str, Any]:
    parts = [
        {name: value for name in _PART_FIELDS if (value := getattr(part, name))} | {"kind": part.kind.value}
        for part in written.parts
    ]
    return {"model": written.model, "provider": written.provider, "parts": parts}


def _parse_parts(found: Mapping[str, Any] | None) -> ProviderParts | None:
    if found is None:
        return None
    parts = tuple(ReplyPart(**{**part, "kind": PartKind(part["kind"])}) for part in found["parts"])
    return ProviderParts(found["model"], found["provider"], parts)


def _tokens(usage: Usage) -> list[int]:
    tokens = [usage.input_tokens, usage.output_tokens]
    cache = [usage.cached_tokens, usage.cache_write_tokens]
    return [*tokens, *cache] if any(cache) else tokens


def from_stored(row: StoredMessage) -> Message | None:
    """A stored message as the model sees it; None for messages for people only."""
    try:
        if row.role == MessageRole.ASSISTANT and row.kind == REPLY:
            found = json.loads(row.content)
            calls = tuple(RequestedCall(call["id"], call["tool"], call["arguments"]) for call in found["calls"])
            usage, parts = Usage(*found["usage"]), _parse_parts(found.get("parts"))
            return Reply(found["text"], calls, FinishReason(found["finish"]), usage, parts)
        if row.role == MessageRole.TOOL and row.kind == RESULT:
            found = json.loads(row.content)
            return CallReturn(found["id"], found["tool"], found["text"], found["failed"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamaged.not_as_written(f"Message {row.id!r}") from error
    if row.kind == GOAL:
        return UserText(_goal_text(row))
    if row.kind not in MODEL_VISIBLE or row.role not in (MessageRole.USER, MessageRole.SYSTEM):
        return None
    # A notice outside of any turn is marked as such, since it is not a request of a person.
    text = row.content if row.turn_id is not None else f"[posted to this chat: {row.kind}]\n{row.content}"
    return UserText(text, from_person=row.kind not in LOOP_KINDS)


def _goal_text(row: StoredMessage) -> str:
    from punchlist.verification.goal import decode_goal

    try:
        return decode_goal(row.content).text
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamaged.not_as_written(f"Message {row.id!r}") from error


class TurnLog:
    def __init__(self, writer: TurnWriter, calls: BatchWriter, bridge: AsyncBridge, clock: Clock) -> None:
        self._writer = writer
        self._calls = calls
        self._bridge = bridge
        self._clock = clock
        self._unwritten: list[NewMessage] = []
        self._request = ("", "", "")
        self._state = ""
        self._requested_at = 0.0

    def add_results(self, results: Sequence[CallReturn]) -> None:
        """Queue results of calls; they are written with the next message."""
        self._unwritten += [to_stored(result) for result in results]

    def request_sent(self, model: str, request: ModelRequest, state: str) -> None:
        # The state is not part of a message. The trace keeps it whenever it has changed.
        summary = {"messages": len(request.messages), "state": state if state != self._state else None}
        self._state = state
        self._requested_at = monotonic()
        self._request = (model, _ENCODE(summary), timestamp(self._clock()))

    async def save_reply(self, reply: Reply, cost: float | None) -> None:
        used: dict[str, object] = {
            "finish": reply.finish,
            "tokens": [reply.usage.input_tokens, reply.usage.output_tokens],
        }
        if cost is not None:
            used["cost"] = round(cost, 8)
        trace, message = self._trace(_ENCODE(used)), to_stored(reply)
        if not reply.calls:
            await self._write([message], trace)
            return
        # The batch writer stores the calls before any of them runs: one transaction writes both.
        messages = [*self._unwritten, message]
        check_content(messages)
        if monotonic() - self._requested_at > RECHECK_AFTER:
            await self._bridge(self._writer.check_open)
        self._unwritten = []
        self._calls.write_with_next(lambda tx: self._writer.write_in(tx, messages, trace))

    async def save_failure(self, why: str) -> None:
        """Store that the model request brought no reply."""
        await self._write([], self._trace("", why))

    def _trace(self, output: str, error: str | None = None) -> ModelCallRecord:
        model, request, since = self._request
        return ModelCallRecord(model, request, output, error, since, timestamp(self._clock()))

    async def save_goal(self, stored: str) -> None:
        await self._write([NewMessage(MessageRole.USER.value, GOAL, stored)])

    async def save_message(self, message: Message, kind: str) -> None:
        await self._write([to_stored(message, kind)])

    async def save_compaction(self, text: str) -> None:
        await self._write([NewMessage(MessageRole.SYSTEM.value, COMPACTION, text)])

    async def _write(self, messages: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
        await self._calls.flushed()
        await self._bridge(self._writer.write, [*self._unwritten, *messages], trace)
        self._unwritten = []

    async def suspend(self, why: str) -> None:
        await self._calls.flushed()
        await self._bridge(self._writer.suspend, self._unwritten, one_line(why))
        self._unwritten = []

    async def end(self, reason: Reason, why: str, ending: str) -> None:
        """`ending` is stored for later turns; it is empty if nothing is left."""
        await self._calls.flushed()
        messages = [*self._unwritten, *([NewMessage("system", ENDING, ending)] if ending else [])]
        await self._bridge(self._writer.end, messages, one_line(f"{reason}: {why}"))
        self._unwritten = []

    async def read(self) -> Sequence[StoredMessage]:
        return await self._bridge(self._writer.read)
