"""Issues of beads: a line of JSON for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from punchlist.import_export.format_limits import FormatLimits, id_pattern
from punchlist.import_export.item import ExchangeItem, Loss, ParsedFile
from punchlist.import_export.reader import Reader, joined, leftover, parse_json
from punchlist.kernel import text
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus


def _trim(entries: list[ExchangeItem]) -> tuple[list[ExchangeItem], list[Loss]]:
    """A deadline that is a day becomes a time."""
    kept = [
        replace(entry, deadline=f"{entry.deadline}T23:59:59.000000Z") if len(entry.deadline) == DAY else entry
        for entry in entries
    ]
    count = sum(1 for before, after in zip(entries, kept, strict=True) if before != after)
    return kept, [Loss("deadline (a day becomes its end in UTC)", count)] if count else []


DAY: Final = len("2026-02-21")
SHAPE: Final = FormatLimits(
    "beads",
    frozenset(
        {
            "id",
            "title",
            "details",
            "status",
            "priority",
            "blocked_by",
            "parent",
            "acceptance",
            "labels",
            "owner",
            "outcome",
            "deadline",
            "created_at",
            "ended_at",
        }
    ),
    # A closed issue is one that was done.
    states={TodoStatus.CANCELLED: None},
    needs_priority=True,
    dated=True,
    id_form=id_pattern(r"[A-Za-z][A-Za-z0-9_-]*-[A-Za-z0-9]+(\.[0-9]+)*"),
    numbered=lambda number, parent: f"{parent}.{number}" if parent else f"pl-{number}",
    trim=_trim,
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
PART: Final = "parent-child"
KNOWN: Final = (
    "id",
    "title",
    "description",
    "design",
    "notes",
    "acceptance_criteria",
    "status",
    "priority",
    "issue_type",
    "assignee",
    "labels",
    "dependencies",
    "created_at",
    "updated_at",
    "closed_at",
    "close_reason",
    "due_at",
)


def write(entries: list[ExchangeItem]) -> str:
    return "".join(json.dumps(_issue(entry), ensure_ascii=False) + "\n" for entry in entries)


def _issue(entry: ExchangeItem) -> dict[str, Any]:
    links = [(other, BLOCKING[0]) for other in entry.blocked_by]
    if entry.parent:
        links.append((entry.parent, PART))
    more = {
        "acceptance_criteria": entry.acceptance,
        "assignee": entry.owner,
        "labels": list(entry.labels),
        "closed_at": entry.ended_at,
        "close_reason": entry.outcome,
        "due_at": entry.deadline,
        "dependencies": [
            {
                "issue_id": entry.id,
                "depends_on_id": other,
                "type": kind,
                "created_at": entry.created_at,
                "created_by": "punchlist",
            }
            for other, kind in links
        ],
    }
    return {
        "id": entry.id,
        "title": entry.title,
        "description": entry.details,
        "status": STATES[entry.status],
        "priority": LEVELS[entry.priority or TodoPriority.MEDIUM],
        "issue_type": "task",
        "created_at": entry.created_at,
        "updated_at": entry.ended_at or entry.created_at,
        **{name: value for name, value in more.items() if value},
    }


def read(written: str) -> ParsedFile:
    """The file, or the array that `bd list --json` prints."""
    reader = Reader()
    for where, raw in _issues(reader, written):
        issue = reader.object(where, raw)
        if issue is None:
            continue
        if issue.get("_type") not in (None, "issue"):
            reader.remark(f"{text.excerpt(str(issue['_type']))!r} is no issue and left out")
        elif issue.get("status") == "tombstone":
            reader.remark("a deleted issue is left out")
        else:
            reader.add(where, _entry(reader, where, issue))
    return reader.done()


def _issues(reader: Reader, written: str) -> Iterator[tuple[str, Any]]:
    if written.lstrip().startswith("["):
        for index, raw in enumerate(parse_json(written)):
            yield f"[{index}]", raw
        return
    # Not `splitlines`: a string may have what Unicode calls a line break.
    for number, line in enumerate(written.split("\n"), start=1):
        if line.strip():
            with reader.collecting():
                yield f"line {number}", parse_json(line, f"line {number}")


def _entry(reader: Reader, where: str, issue: Mapping[str, Any]) -> ExchangeItem:
    blocked_by, parent = _links(reader, f"{where}, dependencies", issue.get("dependencies"))
    kind = issue.get("issue_type")
    extra = leftover(issue, KNOWN)
    if isinstance(kind, str) and kind not in ("", "task"):
        extra["issue_type"] = kind
    return ExchangeItem(
        title=reader.title(f"{where}, title", issue.get("title")),
        id=reader.id(f"{where}, id", issue.get("id"), required=True),
        details=joined(
            ("", reader.block(f"{where}, description", issue.get("description"))),
            ("Design", reader.block(f"{where}, design", issue.get("design"))),
            ("Notes", reader.block(f"{where}, notes", issue.get("notes"))),
        ),
        status=reader.status(f"{where}, status", issue.get("status")),
        priority=_priority(reader, where, issue.get("priority")),
        blocked_by=blocked_by,
        parent=parent,
        acceptance=reader.block(f"{where}, acceptance_criteria", issue.get("acceptance_criteria")),
        labels=reader.lines(f"{where}, labels", issue.get("labels")),
        owner=reader.line(f"{where}, assignee", issue.get("assignee")),
        outcome=reader.block(f"{where}, close_reason", issue.get("close_reason")),
        deadline=reader.time(f"{where}, due_at", issue.get("due_at")),
        created_at=reader.time(f"{where}, created_at", issue.get("created_at")),
        ended_at=reader.time(f"{where}, closed_at", issue.get("closed_at")),
        extra=extra,
    )


def _priority(reader: Reader, where: str, raw: Any) -> TodoPriority | None:
    if raw is None:
        return None
    if isinstance(raw, int) and not isinstance(raw, bool) and raw in PRIORITIES:
        if raw not in LEVELS.values():
            reader.remark(f"the priority {raw} is taken as {PRIORITIES[raw]}")
        return PRIORITIES[raw]
    reader.problem(f"{where}, priority", f"must be a whole number from 0 to {max(PRIORITIES)}")
    return None


def _links(reader: Reader, where: str, raw: Any) -> tuple[tuple[str, ...], str]:
    """What an issue waits for, and what it is a part of."""
    blocked_by: dict[str, None] = {}
    parent = ""
    for index, one in enumerate(reader.array(where, raw)):
        at = f"{where}[{index}]"
        link = reader.object(at, one)
        other = reader.id(at, link.get("depends_on_id"), required=True) if link is not None else ""
        kind = link.get("type", BLOCKING[0]) if link is not None else None
        if not other:
            continue
        if kind in BLOCKING:
            blocked_by[other] = None
        elif kind == PART and not parent:
            parent = other
        else:
            reader.remark(f"a link of the type {text.excerpt(str(kind))!r} is left out")
    return tuple(blocked_by), parent
