"""Entries of the screen from stored messages and calls. Damaged messages are shown as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from punchlist.agent.message_kinds import COMPACTION, CONTINUATION, ENDING, GOAL, REMINDER, REPLY, RESULT, RESUMED
from punchlist.checklist.service import UPDATE_KIND
from punchlist.conversations.model import NoticeKind
from punchlist.integrations.session_goals import GOAL_KIND
from punchlist.kernel.clock import parse_timestamp
from punchlist.surfaces.tui.entries import CallEntry, Entry, ListEntry, NoteEntry, ReplyEntry, SaidEntry

if TYPE_CHECKING:
    from punchlist.conversations.model import ChatEntry, Message
    from punchlist.toolcalls.stored_call import StoredCall

E = TypeVar("E", bound=Entry)


class CallResult(NamedTuple):
    status: str
    text: str


FindCall = Callable[[str], "StoredCall | None"]
FindEditor = Callable[[str], str]
"""Who has edited the arguments of a call; empty if no person has."""

_LEADS: Final = {
    CONTINUATION: "continued: ",
    COMPACTION: "context compacted: ",
    REMINDER: "reminded: ",
    RESUMED: "resumed: ",
    GOAL: "completed only if: ",
    GOAL_KIND: "the goal is: ",
}
_NOTICES: Final = frozenset(kind.value for kind in NoticeKind)
_ITEM: Final = re.compile(r"^Your item: (.+)$", re.MULTILINE)


def entries_from(
    chat: Sequence[ChatEntry], find_call: FindCall, list_before: str = "", find_editor: FindEditor = lambda _: ""
) -> list[Entry]:
    """The entries of stored messages, in order. Results become part of their calls.

    `list_before` is the last message about the list before these.
    """
    found: dict[str, Entry] = {}
    last: Entry | None = None
    for each in chat:
        for entry in _entries(each, find_call, find_editor):
            placed = replace(entry, position=each.message.position)
            if isinstance(placed, ListEntry):
                placed, list_before = replace(placed, before=list_before), placed.after
                placed = last.followed_by(placed) if isinstance(last, ListEntry) else placed
            found[placed.id] = last = placed
    return with_results(list(found.values()), results_of(chat))


def results_of(chat: Sequence[ChatEntry]) -> dict[str, CallResult]:
    """The results among the messages, by call."""
    results: dict[str, CallResult] = {}
    for each in chat:
        if each.message.kind == RESULT and (result := _parsed(each.message.content)) is not None:
            status = "error" if result.get("failed") else "success"
            results[str(result.get("id"))] = CallResult(status, str(result.get("text", "")))
    return results


def with_results(entries: Sequence[E], results: Mapping[str, CallResult]) -> list[E]:
    """The entries, with the results of calls that have not ended.

    A call that was answered without being run, such as a claim that its item is complete, has no state of its own.
    """
    return [
        replace(entry, status=result.status, output=result.text)
        if isinstance(entry, CallEntry) and not entry.has_ended and (result := results.get(entry.id)) is not None
        else entry
        for entry in entries
    ]


def open_calls(entries: Sequence[Entry]) -> list[CallEntry]:
    """The calls among the entries that have not ended."""
    return [entry for entry in entries if isinstance(entry, CallEntry) and not entry.has_ended]


def _entries(each: ChatEntry, find_call: FindCall, find_editor: FindEditor) -> Iterator[Entry]:
    message, turn = each.message, each.turn
    depth = 1 if turn is not None and turn.parent_turn_id is not None else 0
    agent = turn.agent_id if turn is not None else ""
    reply = _parsed(message.content) if message.kind == REPLY else None
    if reply is not None:
        if text := str(reply.get("text", "")).strip():
            yield ReplyEntry(message.id, text, agent, depth)
        for call in reply.get("calls", ()):
            yield call_entry(call, find_call(call["id"]), agent, depth, find_editor)
    elif message.kind == RESULT:
        return
    elif message.role == "user" and message.kind == "text":
        if depth:
            yield NoteEntry(message.id, "delegation", f"{agent} works on: {_task(message.content)}", depth)
        else:
            yield SaidEntry(message.id, message.content, message.created_at)
    elif message.role == "assistant":
        yield ReplyEntry(message.id, message.content, agent, depth)
    elif message.kind == UPDATE_KIND:
        yield ListEntry(message.id, "", message.content, depth)
    else:
        yield NoteEntry(message.id, message.kind, _note(message), depth)


def _note(message: Message) -> str:
    if message.kind == ENDING:
        return message.content
    if message.kind == GOAL_KIND and not message.content:
        return "the goal was removed"
    if message.kind in _NOTICES:
        from punchlist.missions.chats import without_heading

        return f"{message.kind.replace('_', ' ')}: {without_heading(message.content)}"
    return _LEADS.get(message.kind, "") + _readable(message.content)


def call_entry(
    call: dict[str, Any],
    stored: StoredCall | None,
    agent: str = "",
    depth: int = 0,
    find_editor: FindEditor = lambda _: "",
) -> CallEntry:
    entry = CallEntry(str(call["id"]), str(call["tool"]), _arguments(call["arguments"]), agent=agent, depth=depth)
    return entry if stored is None else with_stored(entry, stored, find_editor)


def with_stored(entry: CallEntry, stored: StoredCall, find_editor: FindEditor) -> CallEntry:
    """The entry with the state of its call, and with the arguments that a person gave it instead of the agent's."""
    seconds = None
    if stored.started_at and stored.ended_at:
        seconds = (parse_timestamp(stored.ended_at) - parse_timestamp(stored.started_at)).total_seconds()
    output = stored.result or stored.explanation or (entry.output if not stored.ended_at else "")
    arguments = _arguments(_parsed(stored.arguments))
    # Other differences are those of secrets and of long texts.
    if arguments != entry.arguments and (editor := find_editor(entry.id)):
        entry = replace(entry, arguments=arguments, edited_by=editor)
    return replace(
        entry, status=stored.status, output=output, seconds=seconds, started_at=stored.started_at or entry.started_at
    )


def _arguments(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"arguments": value}


def _task(content: str) -> str:
    """The request of a worker, led by the item that it is about."""
    items = _ITEM.findall(content)
    return f"{items[-1]}\n{content}" if items else content


def _parsed(content: str) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _readable(content: str) -> str:
    """The text of a stored object that has one."""
    found = _parsed(content) if content.startswith("{") else None
    if found is None:
        return content
    return next((str(found[name]) for name in ("summary", "text", "criteria", "goal") if name in found), content)
