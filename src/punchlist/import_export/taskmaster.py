"""Task Master's tasks.json: tasks with one level of subtasks, under the name of a tag or, formerly, without one.

A subtask is numbered within its task; a number among its dependencies is a sibling's, if there is one, else
a task's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits, id_pattern
from punchlist.import_export.item import ExchangeItem, Loss, ParsedFile
from punchlist.import_export.reader import Reader, joined, leftover, parse_json
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
KNOWN: Final = (
    "id",
    "title",
    "description",
    "details",
    "testStrategy",
    "acceptanceCriteria",
    "status",
    "priority",
    "dependencies",
    "subtasks",
    "parentTaskId",
    "parentId",
)
_TOP: Final = id_pattern("[1-9][0-9]{0,8}")


def _fits(id: str, parent: str) -> bool:
    return _TOP(id, "") if not parent else id.startswith(f"{parent}.") and _TOP(id.removeprefix(f"{parent}."), "")


def _trim(entries: list[ExchangeItem]) -> tuple[list[ExchangeItem], list[Loss]]:
    """Without what a subtask cannot say: that it waits for a task which has the number of a sibling."""
    known = {entry.id for entry in entries}

    def sayable(entry: ExchangeItem, other: str) -> bool:
        sibling = f"{entry.parent}.{other}"
        return not entry.parent or "." in other or sibling == entry.id or sibling not in known

    kept = [
        replace(entry, blocked_by=tuple(one for one in entry.blocked_by if sayable(entry, one))) for entry in entries
    ]
    count = sum(1 for before, after in zip(entries, kept, strict=True) if before != after)
    return kept, [Loss("dependencies on tasks numbered like a sibling", count)] if count else []


SHAPE: Final = FormatLimits(
    "taskmaster",
    frozenset({"id", "title", "details", "status", "priority", "blocked_by", "acceptance", "parent"}),
    priorities={TodoPriority.CRITICAL: TodoPriority.HIGH},
    needs_priority=True,
    tree=True,
    deepest=1,
    id_form=_fits,
    numbered=lambda number, parent: f"{parent}.{number}" if parent else str(number),
    trim=_trim,
)


def write(entries: list[ExchangeItem]) -> str:
    tasks: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry.parent:
            tasks[entry.parent]["subtasks"].append(_task(entry))
        else:
            tasks[entry.id] = {**_task(entry), "subtasks": []}
    return json.dumps({TAG: {"tasks": list(tasks.values()), "metadata": {}}}, ensure_ascii=False, indent=2) + "\n"


def _task(entry: ExchangeItem) -> dict[str, Any]:
    return {
        "id": int(entry.id.rpartition(".")[2]),
        "title": entry.title,
        "description": entry.details,
        "status": STATES[entry.status],
        "dependencies": [_number(one, entry.parent) for one in entry.blocked_by],
        "priority": (entry.priority or TodoPriority.MEDIUM).value,
        "details": "",
        "testStrategy": entry.acceptance,
    }


def _number(id: str, parent: str) -> int | str:
    own = id.removeprefix(f"{parent}.") if parent else id
    return int(own) if "." not in own else id


def read(written: str) -> ParsedFile:
    reader = Reader()
    where, tasks = _tasks(reader, parse_json(written))
    for index, raw in enumerate(tasks):
        at = f"{where}[{index}]"
        task = reader.object(at, raw)
        if task is None:
            continue
        id = reader.id(f"{at}.id", task.get("id"), required=True)
        subtasks = reader.array(f"{at}.subtasks", task.get("subtasks"))
        reader.add(at, _entry(reader, at, task, id, "", frozenset()))
        _read_subtasks(reader, at, id, subtasks)
    return reader.done()


def _read_subtasks(reader: Reader, where: str, parent: str, subtasks: Sequence[Any]) -> None:
    read = []
    for index, raw in enumerate(subtasks):
        at = f"{where}.subtasks[{index}]"
        if subtask := reader.object(at, raw):
            number = reader.id(f"{at}.id", subtask.get("id"), required=True)
            if more := len(reader.array(f"{at}.subtasks", subtask.get("subtasks"))):
                reader.remark(f"{at} is a subtask that has {more} of its own; they are left out")
            read.append((at, subtask, number.rpartition(".")[2]))
    siblings = frozenset(number for _, _, number in read)
    for at, subtask, number in read:
        reader.add(at, _entry(reader, at, subtask, f"{parent}.{number}", parent, siblings - {number}))


def _tasks(reader: Reader, raw: Any) -> tuple[str, list[Any]]:
    """Where the tasks are, and they."""
    match raw:
        case {"tasks": list(tasks)}:
            return "tasks", tasks
        case dict():
            tagged: dict[str, list[Any]] = {name: tag["tasks"] for name, tag in raw.items() if _is_tag(tag)}
            if tagged:
                chosen = TAG if TAG in tagged else next(iter(tagged))
                for name in tagged:
                    if name != chosen:
                        reader.remark(f"the tag {excerpt(name)!r} is left out; {excerpt(chosen)!r} is read")
                return f"{excerpt(chosen)}.tasks", tagged[chosen]
    raise InvalidInput('It must be an object with "tasks", or with tags that have them.')


def _is_tag(tag: Any) -> bool:
    return isinstance(tag, dict) and isinstance(tag.get("tasks"), list)


def _entry(
    reader: Reader, where: str, task: Mapping[str, Any], id: str, parent: str, siblings: frozenset[str]
) -> ExchangeItem:
    said = reader.ids(f"{where}.dependencies", task.get("dependencies"))
    criteria = [reader.block(f"{where}.{name}", task.get(name)) for name in ("testStrategy", "acceptanceCriteria")]
    return ExchangeItem(
        title=reader.title(f"{where}.title", task.get("title")),
        id=id,
        details=joined(
            ("", reader.block(f"{where}.description", task.get("description"))),
            ("", reader.block(f"{where}.details", task.get("details"))),
        ),
        status=reader.status(f"{where}.status", task.get("status")),
        priority=reader.priority(f"{where}.priority", task.get("priority")),
        blocked_by=tuple(dict.fromkeys(f"{parent}.{one}" if one in siblings else one for one in said)),
        parent=parent,
        acceptance="\n\n".join(one for one in criteria if one),
        extra=leftover(task, KNOWN),
    )
