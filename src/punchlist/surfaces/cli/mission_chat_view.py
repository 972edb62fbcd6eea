"""Render a chat for the terminal: messages in full, tool calls in one line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from punchlist.agent.message_kinds import TEXT
from punchlist.conversations.model import ChatEntry, MessageRole, NoticeKind, QueuedMessage
from punchlist.kernel.text import visible, visible_block
from punchlist.models.model import CallReturn, Reply
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line, line_width
from punchlist.surfaces.conversation_export import message_json, parse_message

_INDENT: Final = "  "
_SHOWN_IN_FULL: Final = frozenset({TEXT, *(notice.value for notice in NoticeKind)})


def entry_json(entry: ChatEntry) -> dict[str, Any]:
    return {**message_json(entry.message), "agent": entry.turn.agent_id if entry.turn else None}


def chat_lines(entries: Sequence[ChatEntry], pending: Sequence[QueuedMessage]) -> Iterator[str]:
    cells = line_width()
    for entry in entries:
        yield from _entry_lines(entry, cells)
    if not entries:
        yield "\nNo messages yet."
    for message in pending:
        yield f"\n{format_time(message.created_at)}  {visible(message.said_by)}  waits for delivery"
        yield from _block(message.content)


def _entry_lines(entry: ChatEntry, cells: int) -> Iterator[str]:
    message = entry.message
    agent = visible(entry.turn.agent_id) if entry.turn else "punchlist"
    indent = _INDENT if entry.turn and entry.turn.parent_turn_id else ""
    match parse_message(message):
        case Reply(text=text, calls=calls):
            if text.strip():
                yield f"\n{indent}{format_time(message.created_at)}  {agent}"
                yield from (f"{indent}{line}" for line in _block(text))
            for call in calls:
                arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
                yield fit_line(f"{indent}{_INDENT}→ {visible(call.tool)} {visible(arguments)}", cells)
        case CallReturn() as result:
            text = " ".join(result.text.split())
            icon = "✗" if result.failed else "✓"
            yield fit_line(f"{indent}{_INDENT}{icon} {visible(result.tool)} {visible(text)}", cells)
        case _ if message.kind in _SHOWN_IN_FULL:
            yield f"\n{indent}{format_time(message.created_at)}  {_author(entry, agent)}"
            yield from (f"{indent}{line}" for line in _block(message.content))
        case _:
            text = " ".join(message.content.split())
            yield fit_line(f"{indent}{_INDENT}{visible(message.kind)}: {visible(text)}", cells)


def _author(entry: ChatEntry, agent: str) -> str:
    message, delegated = entry.message, entry.turn is not None and entry.turn.parent_turn_id is not None
    if message.kind == TEXT:
        if message.role != MessageRole.USER:
            return agent
        return f"for {agent}" if delegated else "person"
    kind = message.kind.replace("_", " ")
    # A user message is the request of a turn; other notices are posted for all.
    return f"{kind} for {agent}" if message.role == MessageRole.USER else kind


def _block(text: str) -> Iterator[str]:
    for line in visible_block(text).strip("\n").split("\n"):
        yield f"{_INDENT}{line}".rstrip()
