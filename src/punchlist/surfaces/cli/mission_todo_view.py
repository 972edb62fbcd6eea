"""Render a mission todo for the terminal: its fields, and pages of its changes, tool calls and messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from punchlist.kernel.text import visible, visible_block
from punchlist.missions.escalations.transitions import question_text
from punchlist.missions.model import MissionTodo
from punchlist.missions.todos.validation import check_result
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line, format_run_usage, line_width
from punchlist.surfaces.cli.mission_chat_view import entry_lines, posted_by
from punchlist.surfaces.cli.mission_view import is_late
from punchlist.surfaces.cli.todo_parts import ICONS, part_lines
from punchlist.views.todo_detail import TodoDetail
from punchlist.views.todo_evidence import EvidencePage, TodoCall
from punchlist.views.todo_history import HistoryEntry, HistoryPage
from punchlist.views.todo_transcript import TodoTranscript

_MAX_EVIDENCE: Final = 20
_MAX_HISTORY: Final = 50
_MIN_VALUE_CELLS: Final = 10
_MESSAGE_HEADING: Final = re.compile(r"^\[TODO [^]\n]*\]\s*")
_CALL_ICONS: Final = {"success": "✓", "error": "✗", "cancelled": "✗"}


def detail_lines(detail: TodoDetail, now: datetime) -> Iterator[str]:
    todo = detail.todo
    yield f"{ICONS[todo.status]} {visible(todo.title)}"
    for name, value in _facts(detail, now):
        yield f"  {name:<9} {value}"
    blocks = {
        "Description": todo.description,
        "Why": todo.justification,
        "Done when": todo.completion_criteria,
        "Outcome": todo.outcome,
        "Completed although its check failed": todo.override_reason,
    }
    for heading, text in blocks.items():
        if text:
            yield f"\n{heading}"
            yield from (f"  {line}".rstrip() for line in visible_block(text).splitlines())
    for one in detail.escalations:
        yield f"\nQuestion ({one.status}): punchlist mission answer {one.id[-8:]} extend|cancel|keep"
        yield from (f"  │ {line}" for line in visible_block(question_text(one.question)).splitlines())
    for request in detail.requests:
        answers = "approve|deny" if request.kind == "approval" else "answer"
        yield f"\n{request.kind.capitalize()} of {visible(request.agent)}: punchlist inbox {answers} {request.id[-8:]}"
        yield from (f"  │ {line}" for line in visible_block(request.text).splitlines())
    yield from part_lines(detail.parts, line_width())
    yield from _activity(detail, line_width())


def _facts(detail: TodoDetail, now: datetime) -> Iterator[tuple[str, str]]:
    todo, mission = detail.todo, detail.mission
    others = ", ".join(visible(slug) for slug in json.loads(todo.also_affects))
    yield "id", todo.id
    yield "pillar", f"{mission.slug}/{detail.pillar}{f', also affects {others}' if others else ''}"
    since = todo.ended_at or todo.started_at
    yield "status", f"{todo.status}{f' since {format_time(since)}' if since else ''}, {todo.priority} priority"
    if todo.deadline is not None:
        yield "deadline", f"{visible(todo.deadline)}{', OVERDUE' if is_late(mission, todo, now) else ''}"
    if todo.assigned_agent is not None:
        yield "agent", visible(todo.assigned_agent)
    if detail.claim is not None:
        yield "claimed", f"by {visible(detail.claim.holder)} until {format_time(detail.claim.lease_until)}"
    if todo.completion_check is not None:
        yield "check", visible(_describe_check(todo))
    if todo.label_names:
        yield "labels", ", ".join(map(visible, todo.label_names))
    if detail.parts.parent is not None:
        yield "part of", f"{visible(detail.parts.parent.title)} ({detail.parts.parent.id[-8:]})"
    yield "version", todo.version
    yield "created", format_time(todo.created_at)
    yield "chat", visible(detail.conversation_id)


def _describe_check(todo: MissionTodo) -> str:
    match json.loads(todo.completion_check or "{}"):
        case {"name": name}:
            check = str(name)
        case {"metric": metric, "atMost": level}:
            check = f"{metric} at most {level}"
        case {"metric": metric, "atLeast": level}:
            check = f"{metric} at least {level}"
        case {"file": file, **more}:
            check = f"{file} contains “{more['contains']}”" if "contains" in more else f"{file} is not empty"
        case {"command": [*words]}:
            check = " ".join(map(str, words))
        case other:
            check = str(other)
    result = check_result(todo)
    if result is None:
        return f"{check} (not run yet)"
    return f"{check} ({'passed' if result.get('passed') else 'did not pass'} {format_time(str(result.get('at')))})"


def _activity(detail: TodoDetail, cells: int) -> Iterator[str]:
    if detail.runs:
        yield "\nRuns"
        for run in detail.runs:
            why = f"  {visible(run.why)}" if run.why else ""
            yield fit_line(f"  {run.id[-8:]}  {run.kind}  {run.status}  {format_time(run.created_at)}{why}", cells)
        yield f"  {format_run_usage(detail.usage)}"
    calls = detail.evidence.calls[-_MAX_EVIDENCE:]
    if calls:
        yield "\nEvidence"
        if detail.usage.calls > len(calls):
            yield f"  … {detail.usage.calls - len(calls)} earlier calls: --part evidence"
        yield from (f"  {line}" for line in _call_lines(calls, cells - 2))
    if detail.messages:
        yield "\nMessages"
        for message in detail.messages:
            text = " ".join(_MESSAGE_HEADING.sub("", message.content).split())
            kind = f"{message.kind}{posted_by(message)}"
            yield fit_line(f"  {format_time(message.created_at)}  {kind}: {visible(text)}", cells)
    yield "\nHistory"
    yield from (f"  {line}" for line in _history_lines(detail.history[:_MAX_HISTORY], cells - 2))
    if len(detail.history) > _MAX_HISTORY:
        yield "  … later changes: --part history"


def _call_lines(calls: Sequence[TodoCall], cells: int) -> Iterator[str]:
    for call, arguments in calls:
        icon = _CALL_ICONS.get(call.status, "…")
        yield fit_line(f"{icon} {visible(call.tool)} ({visible(call.agent)})  {visible(call.summary)}", cells)
        if arguments != "{}":
            yield fit_line(f"    {visible(arguments)}", cells)
        if call.output_file:
            yield f"    full output: {visible(call.output_file)}"


def _history_lines(entries: Sequence[HistoryEntry], cells: int) -> Iterator[str]:
    for entry in entries:
        changed = entry.to_status is not None and entry.to_status != entry.from_status
        to = f" → {entry.to_status}" if changed else ""
        reason = f": {visible(' '.join(entry.reason.split()))}" if entry.reason else ""
        yield fit_line(f"{format_time(entry.at)}  {entry.action}{to}  {visible(entry.actor)}{reason}", cells)
        for change in entry.changes:
            # Both values are visible on a narrow terminal.
            room = max((cells - len(change.name) - 9) // 2, _MIN_VALUE_CELLS)
            values = (fit_line(_shown_value(value), room) for value in (change.before, change.after))
            yield fit_line(f"    {change.name}: {' → '.join(values)}", cells)


def _shown_value(value: Any) -> str:
    if value in (None, "", []):
        return "none"
    if isinstance(value, list):
        return ", ".join(visible(str(each)) for each in value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(" ".join(text.split()))


# --- pages of a part --------------------------------------------------------------------------------------


def history_page_lines(page: HistoryPage) -> Iterator[str]:
    yield from _history_lines(page.entries, line_width())
    if page.cursor:
        yield f"\nLater changes: --cursor {page.cursor}"


def evidence_page_lines(page: EvidencePage) -> Iterator[str]:
    if not page.calls:
        yield "No tool calls."
    yield from _call_lines(page.calls, line_width())
    if page.cursor:
        yield f"\nEarlier calls: --cursor {page.cursor}"


def transcript_page_lines(page: TodoTranscript) -> Iterator[str]:
    for entry in page.entries:
        yield from entry_lines(entry, line_width())
    if not page.entries:
        yield "No messages yet."
    if page.cursor:
        yield f"\nLater messages: --cursor {page.cursor}"
