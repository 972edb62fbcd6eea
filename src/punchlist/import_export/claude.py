"""Tasks of Claude Code: a folder `~/.claude/tasks/SESSION` with a file per task; also its older todo lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits, id_pattern
from punchlist.import_export.item import ExchangeItem, ParsedFile
from punchlist.import_export.reader import Reader, Record, parse_json
from punchlist.kernel import text
from punchlist.missions.todos.lifecycle import TodoStatus

LIMITS: Final = FormatLimits(
    "claude",
    frozenset({"id", "title", "details", "status", "active_form", "blocked_by", "owner"}),
    states={TodoStatus.CANCELLED: None, TodoStatus.BACKLOG: TodoStatus.PENDING},
    # Claude Code does not show a task without an active form.
    needs_active_form=True,
    # Claude Code continues counting from the highest number.
    id_form=id_pattern("[1-9][0-9]{0,8}"),
    by_number=True,
)


def write(items: list[ExchangeItem]) -> str:
    """All tasks in one array; Claude Code itself uses `write_files`."""
    return json.dumps(_tasks(items), ensure_ascii=False, indent=2) + "\n"


def write_files(items: list[ExchangeItem]) -> dict[str, str]:
    return {f"{task['id']}.json": json.dumps(task, ensure_ascii=False, indent=2) + "\n" for task in _tasks(items)}


def _tasks(items: list[ExchangeItem]) -> list[dict[str, Any]]:
    blocks: dict[str, list[str]] = {}
    for item in items:
        for other in item.blocked_by:
            blocks.setdefault(other, []).append(item.id)
    return [
        {
            "id": item.id,
            "subject": item.title,
            "description": item.details,
            "activeForm": item.active_form,
            **({"owner": item.owner} if item.owner else {}),
            "status": item.status.value,
            "blocks": blocks.get(item.id, []),
            "blockedBy": list(item.blocked_by),
        }
        for item in items
    ]


def read(written: str) -> ParsedFile:
    raw = parse_json(written)
    tasks = [raw] if isinstance(raw, dict) else raw
    if not isinstance(tasks, list):
        raise InvalidInput(f"It must be a task or an array of tasks, got {text.json_type(raw)}.")
    return _parse_tasks(Reader(), [(f"[{index}]", task) for index, task in enumerate(tasks)])


def read_files(files: Mapping[str, str]) -> ParsedFile:
    reader = Reader()
    tasks = []
    for name in _in_numeric_order(files):
        with reader.collect_problems():
            tasks.append((text.excerpt(name), parse_json(files[name], text.excerpt(name))))
    return _parse_tasks(reader, tasks)


def _in_numeric_order(files: Mapping[str, str]) -> list[str]:
    """The names of task files in the order of creation; other files, such as locks, are skipped."""

    def key(name: str) -> tuple[bool, int, str]:
        stem = name.removesuffix(".json")
        return not stem.isdecimal(), int(stem) if stem.isdecimal() else 0, stem

    return sorted((name for name in files if name.endswith(".json")), key=key)


def _parse_tasks(reader: Reader, raw_tasks: list[tuple[str, Any]]) -> ParsedFile:
    blocked: dict[str, list[str]] = {}
    tasks: list[tuple[str, Record]] = []
    for where, raw in raw_tasks:
        task = reader.object(where, raw)
        if task is None:
            continue
        if task.get("status") == "deleted":
            reader.remark("a deleted task is left out")
            continue
        tasks.append((where, task))
        own = reader.id(f"{where}.id", task.get("id"))
        for other in reader.ids(f"{where}.blocks", task.get("blocks")):
            blocked.setdefault(other, []).append(own)
    for where, task in tasks:
        reader.add(where, _parse_task(reader, where, task, blocked))
    return reader.result()


def _parse_task(reader: Reader, where: str, task: Record, blocked: Mapping[str, list[str]]) -> ExchangeItem:
    id = reader.id(f"{where}.id", task.get("id"))
    title_key = "content" if "content" in task and "subject" not in task else "subject"
    blocked_by = reader.ids(f"{where}.blockedBy", task.get("blockedBy"))
    return ExchangeItem(
        title=reader.title(f"{where}.{title_key}", task.get(title_key)),
        id=id,
        details=reader.block(f"{where}.description", task.get("description")),
        status=reader.status(f"{where}.status", task.get("status")),
        priority=reader.priority(f"{where}.priority", task.get("priority")),
        active_form=reader.line(f"{where}.activeForm", task.get("activeForm"), max_length=500),
        blocked_by=tuple(dict.fromkeys([*blocked_by, *(other for other in blocked.get(id, ()) if id and other)])),
        owner=reader.line(f"{where}.owner", task.get("owner")),
        extra=task.unread("blocks"),
    )
