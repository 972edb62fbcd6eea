"""A chat as people read it: who said what, and when; what agents did meanwhile, in a line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from punchlist.agent.message_kinds import TEXT
from punchlist.agent.transcript import from_stored
from punchlist.conversations.model import ChatEntry, MessageRole, NoticeKind, QueuedMessage
from punchlist.errors import StoreDamaged
from punchlist.kernel.text import visible, visible_block
from punchlist.models.model import CallReturn, Message, Reply
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line, line_width
from punchlist.surfaces.conversation_json import message_json

_INDENT: Final = "  "
_WHOLE: Final = frozenset({TEXT, *(notice.value for notice in NoticeKind)})
"""Kinds that are said for people to read; of the rest, a line will do."""


def heard_json(heard: ChatEntry) -> dict[str, Any]:
    return {**message_json(heard.message), "agent": heard.turn.agent_id if heard.turn else None}


def lines(heard: Sequence[ChatEntry], waiting: Sequence[QueuedMessage]) -> Iterator[str]:
    cells = line_width()
    for one in heard:
        yield from _message(one, cells)
    if not heard:
        yield "\nNothing was said yet."
    for queued in waiting:
        yield f"\n{format_time(queued.created_at)}  {visible(queued.said_by)}  waits to be heard"
        yield from _whole(queued.content)


def _message(one: ChatEntry, cells: int) -> Iterator[str]:
    message = one.message
    agent = visible(one.turn.agent_id) if one.turn else "punchlist"
    inside = _INDENT if one.turn and one.turn.parent_turn_id else ""
    match _told(one):
        case Reply(text=text, calls=calls):
            if text.strip():
                yield f"\n{inside}{format_time(message.created_at)}  {agent}"
                yield from (f"{inside}{line}" for line in _whole(text))
            for call in calls:
                arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
                yield fit_line(f"{inside}{_INDENT}→ {visible(call.tool)} {visible(arguments)}", cells)
        case CallReturn() as result:
            said = " ".join(result.text.split())
            mark = "✗" if result.failed else "✓"
            yield fit_line(f"{inside}{_INDENT}{mark} {visible(result.tool)} {visible(said)}", cells)
        case _ if message.kind in _WHOLE:
            yield f"\n{inside}{format_time(message.created_at)}  {_who(one, agent)}"
            yield from (f"{inside}{line}" for line in _whole(message.content))
        case _:
            said = " ".join(message.content.split())
            yield fit_line(f"{inside}{_INDENT}{visible(message.kind)}: {visible(said)}", cells)


def _told(one: ChatEntry) -> Message | None:
    try:
        return from_stored(one.message)
    except StoreDamaged:
        return None


def _who(one: ChatEntry, agent: str) -> str:
    message, delegated = one.message, one.turn is not None and one.turn.parent_turn_id is not None
    if message.kind == TEXT:
        said = f"for {agent}" if delegated else "person"
        return said if message.role == MessageRole.USER else agent
    kind = message.kind.replace("_", " ")
    # A request that began a turn, or what was posted for all to read.
    return f"{kind} for {agent}" if message.role == MessageRole.USER else kind


def _whole(text: str) -> Iterator[str]:
    for line in visible_block(text).strip("\n").split("\n"):
        yield f"{_INDENT}{line}".rstrip()
