"""Tasks of Claude Code: a folder `~/.claude/tasks/SESSION` with a file for each; and the older lists of todos."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits, id_pattern
from punchlist.import_export.item import ExchangeItem, ParsedFile
from punchlist.import_export.reader import Reader, leftover, parse_json
from punchlist.kernel import text
from punchlist.missions.todos.lifecycle import TodoStatus

SHAPE: Final = FormatLimits(
    "claude",
    frozenset({"id", "title", "details", "status", "active_form", "blocked_by", "owner"}),
    states={TodoStatus.CANCELLED: None, TodoStatus.BACKLOG: TodoStatus.PENDING},
    # A task without one is not shown there.
    needs_active_form=True,
    # Numbers, since that is how it counts on.
    id_form=id_pattern("[1-9][0-9]{0,8}"),
    by_number=True,
)
KNOWN: Final = (
    "id",
    "subject",
    "content",
    "description",
    "activeForm",
    "status",
    "priority",
    "blocks",
    "blockedBy",
    "owner",
)


def write(entries: list[ExchangeItem]) -> str:
    """All in one array; `files` is how the program itself keeps them."""
    return json.dumps(_tasks(entries), ensure_ascii=False, indent=2) + "\n"


def files(entries: list[ExchangeItem]) -> dict[str, str]:
    return {f"{task['id']}.json": json.dumps(task, ensure_ascii=False, indent=2) + "\n" for task in _tasks(entries)}


def _tasks(entries: list[ExchangeItem]) -> list[dict[str, Any]]:
    blocks: dict[str, list[str]] = {}
    for entry in entries:
        for other in entry.blocked_by:
            blocks.setdefault(other, []).append(entry.id)
    return [
        {
            "id": entry.id,
            "subject": entry.title,
            "description": entry.details,
            "activeForm": entry.active_form,
            **({"owner": entry.owner} if entry.owner else {}),
            "status": entry.status.value,
            "blocks": blocks.get(entry.id, []),
            "blockedBy": list(entry.blocked_by),
        }
        for entry in entries
    ]


def read(written: str) -> ParsedFile:
    raw = parse_json(written)
    tasks = [raw] if isinstance(raw, dict) else raw
    if not isinstance(tasks, list):
        raise InvalidInput(f"It must be a task or an array of them, got {text.json_type(raw)}.")
    return _read(Reader(), [(f"[{index}]", task) for index, task in enumerate(tasks)])


def read_files(files: Mapping[str, str]) -> ParsedFile:
    reader = Reader()
    tasks = []
    for name, written in _by_number(files):
        with reader.collecting():
            tasks.append((text.excerpt(name), parse_json(written, text.excerpt(name))))
    return _read(reader, tasks)


def _by_number(files: Mapping[str, str]) -> list[tuple[str, str]]:
    """In the order in which they were made; other files, such as locks, are no tasks."""
    tasks = [(name.removesuffix(".json"), name) for name in files if name.endswith(".json")]
    tasks.sort(key=lambda one: (not one[0].isdecimal(), int(one[0]) if one[0].isdecimal() else 0, one[0]))
    return [(name, files[name]) for _, name in tasks]


def _read(reader: Reader, tasks: list[tuple[str, Any]]) -> ParsedFile:
    blocked: dict[str, list[str]] = {}
    read: list[tuple[str, Mapping[str, Any]]] = []
    for where, raw in tasks:
        task = reader.object(where, raw)
        if task is None:
            continue
        if task.get("status") == "deleted":
            reader.remark("a deleted task is left out")
            continue
        read.append((where, task))
        own = reader.id(f"{where}.id", task.get("id"))
        for other in reader.ids(f"{where}.blocks", task.get("blocks")):
            blocked.setdefault(other, []).append(own)
    for where, task in read:
        reader.add(where, _entry(reader, where, task, blocked))
    return reader.done()


def _entry(reader: Reader, where: str, task: Mapping[str, Any], blocked: Mapping[str, list[str]]) -> ExchangeItem:
    id = reader.id(f"{where}.id", task.get("id"))
    named = "content" if "content" in task and "subject" not in task else "subject"
    own = reader.ids(f"{where}.blockedBy", task.get("blockedBy"))
    return ExchangeItem(
        title=reader.title(f"{where}.{named}", task.get(named)),
        id=id,
        details=reader.block(f"{where}.description", task.get("description")),
        status=reader.status(f"{where}.status", task.get("status")),
        priority=reader.priority(f"{where}.priority", task.get("priority")),
        active_form=reader.line(f"{where}.activeForm", task.get("activeForm"), longest=500),
        blocked_by=tuple(dict.fromkeys([*own, *(one for one in blocked.get(id, ()) if id and one)])),
        owner=reader.line(f"{where}.owner", task.get("owner")),
        extra=leftover(task, KNOWN),
    )
