"""Task Master's tasks.json: tasks with one level of subtasks, under a tag or, in older files, without one.

Subtasks are numbered within their task. A number in a subtask's dependencies is a sibling if there is one
with this number, otherwise a task.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import ExchangeItem, ParsedFile
from punchlist.import_export.reader import Reader, Record, join_sections, parse_json
from punchlist.kernel.text import excerpt
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

TAG: Final = "master"
STATES: Final = {
    TodoStatus.PENDING: "pending",
    TodoStatus.IN_PROGRESS: "in-progress",
    TodoStatus.COMPLETED: "done",
    TodoStatus.CANCELLED: "cancelled",
    TodoStatus.BACKLOG: "deferred",
}

LIMITS: Final = FormatLimits(
    "taskmaster",
    frozenset({"id", "title", "details", "status", "priority", "blocked_by", "acceptance"}),
    priorities={TodoPriority.CRITICAL: TodoPriority.HIGH},
    needs_priority=True,
    id_form="[1-9][0-9]{0,8}",
)


def write(items: list[ExchangeItem]) -> str:
    tasks = [
        {
            "id": int(item.id),
            "title": item.title,
            "description": item.details,
            "status": STATES[item.status],
            "dependencies": [int(other) for other in item.blocked_by],
            "priority": (item.priority or TodoPriority.MEDIUM).value,
            "details": "",
            "testStrategy": item.acceptance,
            "subtasks": [],
        }
        for item in items
    ]
    return json.dumps({TAG: {"tasks": tasks, "metadata": {}}}, ensure_ascii=False, indent=2) + "\n"


def read(written: str) -> ParsedFile:
    reader = Reader()
    where, tasks = _find_tasks(reader, parse_json(written))
    for index, raw in enumerate(tasks):
        at = f"{where}[{index}]"
        task = reader.object(at, raw)
        if task is not None:
            id = reader.id(f"{at}.id", task.get("id"), required=True)
            subtasks = task.read(Reader.array, "subtasks")
            reader.add(at, _parse_task(task, id, "", frozenset()))
            _parse_subtasks(reader, at, id, subtasks)
    return reader.result()


def _parse_subtasks(reader: Reader, where: str, parent: str, raw_subtasks: Sequence[Any]) -> None:
    subtasks = []
    for index, raw in enumerate(raw_subtasks):
        at = f"{where}.subtasks[{index}]"
        if subtask := reader.object(at, raw):
            number = subtask.read(Reader.id, "id", required=True)
            if more := len(subtask.read(Reader.array, "subtasks")):
                reader.remark(f"{at} is a subtask with {more} subtasks of its own; they are left out")
            subtasks.append((at, subtask, number.rpartition(".")[2]))
    siblings = frozenset(number for _, _, number in subtasks)
    for at, subtask, number in subtasks:
        reader.add(at, _parse_task(subtask, f"{parent}.{number}", parent, siblings - {number}))


def _find_tasks(reader: Reader, raw: Any) -> tuple[str, list[Any]]:
    """The place of the tasks, and the tasks."""
    match raw:
        case {"tasks": list(tasks)}:
            return "tasks", tasks
        case dict():
            tagged: dict[str, list[Any]] = {name: tag["tasks"] for name, tag in raw.items() if _is_tag(tag)}
            if tagged:
                chosen = TAG if TAG in tagged else next(iter(tagged))
                for name in tagged:
                    if name != chosen:
                        reader.remark(f"the tag {excerpt(name)!r} is left out; only {excerpt(chosen)!r} is read")
                return f"{excerpt(chosen)}.tasks", tagged[chosen]
    raise InvalidInput('It must be an object with "tasks", or with tags that have "tasks".')


def _is_tag(tag: Any) -> bool:
    return isinstance(tag, dict) and isinstance(tag.get("tasks"), list)


def _parse_task(task: Record, id: str, parent: str, siblings: frozenset[str]) -> ExchangeItem:
    description, details, strategy, criteria = (
        ("", task.read(Reader.block, key)) for key in ("description", "details", "testStrategy", "acceptanceCriteria")
    )
    dependencies = task.read(Reader.ids, "dependencies")
    return ExchangeItem(
        **task.fields("title", "status", "priority"),
        id=id,
        details=join_sections(description, details),
        blocked_by=tuple(dict.fromkeys(f"{parent}.{each}" if each in siblings else each for each in dependencies)),
        parent=parent,
        acceptance=join_sections(strategy, criteria),
        extra=task.unread("id", "subtasks", "parentTaskId", "parentId"),
    )
