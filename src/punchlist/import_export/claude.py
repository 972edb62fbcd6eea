"""Tasks of Claude Code: a folder `~/.claude/tasks/SESSION` with a file per task; also its older todo lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits
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
    id_form="[1-9][0-9]{0,8}",
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
        own = task.read(Reader.id, "id")
        for other in task.read(Reader.ids, "blocks"):
            blocked.setdefault(other, []).append(own)
    for where, task in tasks:
        reader.add(where, _parse_task(task, blocked))
    return reader.result()


def _parse_task(task: Record, blocked: Mapping[str, list[str]]) -> ExchangeItem:
    title_key = "content" if "content" in task and "subject" not in task else "subject"
    keys = {"title": title_key, "details": "description", "active_form": "activeForm", "blocked_by": "blockedBy"}
    fields = task.fields("id", "status", "priority", "owner", **keys)
    others = [other for other in blocked.get(fields["id"], ()) if fields["id"] and other]
    blocked_by = tuple(dict.fromkeys([*fields.pop("blocked_by"), *others]))
    return ExchangeItem(
        **fields,
        blocked_by=blocked_by,
        extra=task.unread("blocks"),
    )
