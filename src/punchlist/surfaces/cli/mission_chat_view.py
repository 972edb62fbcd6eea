"""Render a chat for the terminal: messages in full, tool calls in one line each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from punchlist.agent.message_kinds import TEXT
from punchlist.conversations.model import ChatEntry, Message, MessageRole, NoticeKind
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.events import Role
from punchlist.kernel.text import visible, visible_block
from punchlist.models.model import CallReturn, Reply
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line, line_width
from punchlist.surfaces.cli.mission_directive import directive_line
from punchlist.surfaces.conversation_export import conversation_json, message_json, parse_message
from punchlist.views.chat import ChatPage

_INDENT: Final = "  "
_SHOWN_IN_FULL: Final = frozenset({TEXT, *(notice.value for notice in NoticeKind)})


def entry_json(entry: ChatEntry) -> dict[str, Any]:
    agent = entry.turn.agent_id if entry.turn else None
    return {**message_json(entry.message), **camel_json(entry.message, "posted_by", "todo_id"), "agent": agent}


def chat_json(page: ChatPage) -> dict[str, Any]:
    return {
        **page.as_json(),
        "conversation": conversation_json(page.conversation),
        "messages": [entry_json(entry) for entry in page.entries],
    }


def chat_lines(page: ChatPage) -> Iterator[str]:
    cells, entries = line_width(), page.entries
    yield from (fit_line(f"directive {directive_line(one)}", cells) for one in page.directives)
    if page.earlier and entries:
        yield f"\nEarlier messages: --before {entries[0].message.position}"
    for entry in entries:
        yield from entry_lines(entry, cells)
    if not entries:
        yield "\nNo messages yet." if not page.earlier else "\nNo messages there."
    if page.later and entries:
        yield f"\nLater messages: --after {entries[-1].message.position}"
    for message in page.queued:
        yield f"\n{format_time(message.created_at)}  {visible(message.said_by)}  waits for delivery"
        yield from _block(message.content)
    for request in page.requests:
        yield f"\n{request.kind} since {format_time(request.at)}: punchlist inbox show {request.id[-8:]}"
        yield from _block(request.text)
    for run in page.runs:
        why = f": {visible(run.why)}" if run.why else ""
        yield fit_line(f"\nrun {run.id[-8:]}  {visible(run.agent)}  {run.status}{why}", cells)


def entry_lines(entry: ChatEntry, cells: int) -> Iterator[str]:
    message = entry.message
    agent = visible(entry.turn.agent_id) if entry.turn else "punchlist"
    indent = _INDENT if entry.delegated else ""
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
    message = entry.message
    if message.kind == TEXT:
        if message.role != MessageRole.USER:
            return agent
        return f"for {agent}" if entry.delegated else "person"
    kind = message.kind.replace("_", " ")
    # A user message is the request of a turn; other notices are posted for all.
    return f"{kind} for {agent}" if message.role == MessageRole.USER else f"{kind}{posted_by(message)}"


def posted_by(message: Message) -> str:
    """` by ada`; empty for what the program posted."""
    role, _, name = (message.posted_by or "").partition(":")
    return f" by {visible(name)}" if name and role != Role.SYSTEM else ""


def _block(text: str) -> Iterator[str]:
    for line in visible_block(text).strip("\n").split("\n"):
        yield f"{_INDENT}{line}".rstrip()
