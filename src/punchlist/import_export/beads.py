"""Issues of beads: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import FIELDS, ExchangeItem, ParsedFile
from punchlist.import_export.reader import Reader, Record, join_sections, parse_json
from punchlist.kernel import text
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

_DATE_LENGTH: Final = len("2026-02-21")


def _trim(item: ExchangeItem) -> ExchangeItem:
    is_date = len(item.deadline) == _DATE_LENGTH
    return replace(item, deadline=f"{item.deadline}T23:59:59.000000Z") if is_date else item


LIMITS: Final = FormatLimits(
    "beads",
    frozenset(FIELDS)
    - {"parent", "active_form", "justification", "waits", "resources", "also_affects", "check"}
    - {"started_at", "extra"},
    # A closed issue counts as completed.
    states={TodoStatus.CANCELLED: None},
    needs_priority=True,
    dated=True,
    id_form=r"[A-Za-z][A-Za-z0-9_-]*-[A-Za-z0-9]+(\.[0-9]+)*",
    numbered="pl-{}",
    trims={"deadline (a date becomes the end of the day in UTC)": _trim},
)
STATES: Final = {
    TodoStatus.PENDING: "open",
    TodoStatus.IN_PROGRESS: "in_progress",
    TodoStatus.COMPLETED: "closed",
    TodoStatus.BACKLOG: "deferred",
}
LEVELS: Final = {TodoPriority.CRITICAL: 0, TodoPriority.HIGH: 1, TodoPriority.MEDIUM: 2, TodoPriority.LOW: 3}
PRIORITIES: Final = {**{level: priority for priority, level in LEVELS.items()}, 4: TodoPriority.LOW}
BLOCKING: Final = ("blocks", "conditional-blocks", "waits-for")
PARENT: Final = "parent-child"


def write(items: list[ExchangeItem]) -> str:
    return "".join(json.dumps(_issue(item), ensure_ascii=False) + "\n" for item in items)


def _issue(item: ExchangeItem) -> dict[str, Any]:
    optional = {
        "acceptance_criteria": item.acceptance,
        "assignee": item.owner,
        "closed_at": item.ended_at,
        "close_reason": item.outcome,
        "due_at": item.deadline,
        "dependencies": [
            {
                "issue_id": item.id,
                "depends_on_id": other,
                "type": BLOCKING[0],
                "created_at": item.created_at,
                "created_by": "punchlist",
            }
            for other in item.blocked_by
        ],
    }
    return {
        "id": item.id,
        "title": item.title,
        "description": item.details,
        "status": STATES[item.status],
        "priority": LEVELS[item.priority or TodoPriority.MEDIUM],
        "issue_type": "task",
        "created_at": item.created_at,
        "updated_at": item.ended_at or item.created_at,
        **{name: value for name, value in optional.items() if value},
    }


def read(written: str) -> ParsedFile:
    """Read the file, or the array that `bd list --json` prints."""
    reader = Reader()
    for where, raw in _issues(reader, written):
        issue = reader.object(where, raw, ", ")
        if issue is None:
            continue
        if issue.get("_type") not in (None, "issue"):
            reader.remark(f"{text.excerpt(str(issue.get('_type')))!r} is not an issue and is left out")
        elif issue.get("status") == "tombstone":
            reader.remark("a deleted issue is left out")
        else:
            reader.add(where, _parse_issue(reader, where, issue))
    return reader.result()


def _issues(reader: Reader, written: str) -> Iterator[tuple[str, Any]]:
    if written.lstrip().startswith("["):
        for index, raw in enumerate(parse_json(written)):
            yield f"[{index}]", raw
        return
    # Not `splitlines`, which also splits at Unicode line breaks inside strings.
    for number, line in enumerate(written.split("\n"), start=1):
        if line.strip():
            with reader.collect_problems():
                yield f"line {number}", parse_json(line, f"line {number}")


def _parse_issue(reader: Reader, where: str, issue: Record) -> ExchangeItem:
    blocked_by, parent = _parse_links(reader, f"{where}, dependencies", issue.get("dependencies"))
    kind = issue.get("issue_type")
    kind = kind if isinstance(kind, str) else ""
    description, design, notes = (issue.read(Reader.block, key) for key in ("description", "design", "notes"))
    return ExchangeItem(
        **issue.fields("title", "status", "created_at", ended_at="closed_at", owner="assignee"),
        **issue.fields(acceptance="acceptance_criteria", outcome="close_reason"),
        id=issue.read(Reader.id, "id", required=True),
        details=join_sections(("", description), ("Design", design), ("Notes", notes)),
        priority=_parse_priority(reader, where, issue.get("priority")),
        blocked_by=blocked_by,
        parent=parent,
        deadline=issue.read(Reader.time, "due_at"),
        extra={**issue.unread("updated_at"), **({"issue_type": kind} if kind not in ("", "task") else {})},
    )


def _parse_priority(reader: Reader, where: str, raw: Any) -> TodoPriority | None:
    if raw is None:
        return None
    if isinstance(raw, int) and not isinstance(raw, bool) and raw in PRIORITIES:
        if raw not in LEVELS.values():
            reader.remark(f"the priority {raw} becomes {PRIORITIES[raw]}")
        return PRIORITIES[raw]
    reader.problem(f"{where}, priority", f"must be a whole number from 0 to {max(PRIORITIES)}")
    return None


def _parse_links(reader: Reader, where: str, raw: Any) -> tuple[tuple[str, ...], str]:
    """The ids that block an issue, and its parent."""
    blocked_by: dict[str, None] = {}
    parent = ""
    for index, each in enumerate(reader.array(where, raw)):
        at = f"{where}[{index}]"
        link = reader.object(at, each)
        other = reader.id(at, link.get("depends_on_id"), required=True) if link is not None else ""
        kind = link.get("type", BLOCKING[0]) if link is not None else None
        if not other:
            continue
        if kind in BLOCKING:
            blocked_by[other] = None
        elif kind == PARENT and not parent:
            parent = other
        else:
            reader.remark(f"a link of the type {text.excerpt(str(kind))!r} is left out")
    return tuple(blocked_by), parent
