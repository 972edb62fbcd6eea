"""The lists that agents of others keep themselves, as our checklist would have them. Pure.

Many have a tool of their own for a list, and their models like it best. Where a hook tells of a call to
one, its list is copied: then it outlives the agent's memory, people can watch it, and it is finished.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from punchlist.checklist.lifecycle import ChecklistStatus, parse_status
from punchlist.checklist.validation import MAX_ITEMS, MAX_TEXT_LENGTH
from punchlist.kernel.text import excerpt

_TOOLS: Final = {
    "TodoWrite": ("todos", "content"),  # Claude Code
    "update_plan": ("plan", "step"),  # Codex
    "write_todos": ("todos", "description"),  # Gemini CLI
    "todowrite": ("todos", "content"),  # opencode
}
"""By the tool's name: where in its arguments the list stands, and what an item is called there."""
OWN_TOOLS: Final = frozenset(_TOOLS)
TASK_TOOLS: Final = frozenset({"TaskCreate", "TaskUpdate"})
"""Claude Code's newer ones, which tell of one task at a time: the list is in files of its own."""


def own_list(tool: str, arguments: Any) -> list[dict[str, Any]] | None:
    """Its items, as `TodoWrite` would be given them; None where there is no list in it. What is no item, or was given
    up, is left out."""
    if tool not in _TOOLS or not isinstance(arguments, Mapping):
        return None
    key, title = _TOOLS[tool]
    raw = arguments.get(key)
    if not isinstance(raw, list):
        return None
    return _items(raw, title)


def own_tasks(written: Iterable[str]) -> list[dict[str, Any]]:
    """The same of the files in which Claude Code keeps its tasks, one each, in their order."""
    return _items([task for one in written if not _is_hidden(task := _parsed(one))], "subject")


def fitted(
    own: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]] = (), of_people: Collection[str] = ()
) -> list[Mapping[str, Any]]:
    """The next copy, after the one before: with those items of it that people have put there (by id), unless the agent
    has taken them over.

    Whoever keeps the list is not there to put anything right. So what does not fit is made to fit: of several in
    progress one is, and of too many those stay that are open, and the last that were done.
    """
    more = Counter(item["content"] for item in before) - Counter(item["content"] for item in own)
    kept = [item for item in before if item["id"] in of_people and item["content"] in more]
    return _one_running([*_few(own, MAX_ITEMS - len(kept)), *kept])


def _is_hidden(task: Any) -> bool:
    """Of those that the program makes for itself, its model does not know."""
    metadata = task.get("metadata") if isinstance(task, Mapping) else None
    return isinstance(metadata, Mapping) and bool(metadata.get("_internal"))


def _parsed(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return None


def _items(raw: Sequence[Any], title: str) -> list[dict[str, Any]]:
    return [item for one in raw if isinstance(one, Mapping) and (item := _item(one, title)) is not None]


def _item(one: Mapping[str, Any], title: str) -> dict[str, Any] | None:
    content, status = one.get(title), one.get("status")
    known = parse_status(status) if isinstance(status, str) else None
    if not isinstance(content, str) or not content.strip() or known is None:
        return None
    active = one.get("activeForm")
    text = _fitting(content)
    doing = _fitting(active) if isinstance(active, str) else ""
    return {"content": text, "activeForm": doing or text, "status": known.value}


def _fitting(text: str) -> str:
    return excerpt(" ".join(text.split()), MAX_TEXT_LENGTH)


_WORTH: Final = (ChecklistStatus.IN_PROGRESS, ChecklistStatus.PENDING, ChecklistStatus.COMPLETED)


def _few(items: Sequence[Mapping[str, Any]], room: int) -> list[Mapping[str, Any]]:
    """In their order, those that are worth most: what is done goes first, and of that the oldest."""

    def worth(index: int) -> tuple[int, int]:
        rank = _WORTH.index(items[index]["status"])
        return rank, -index if _WORTH[rank] is ChecklistStatus.COMPLETED else index

    chosen = sorted(range(len(items)), key=worth)[: max(0, room)]
    return [items[index] for index in sorted(chosen)]


def _one_running(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    running = next((item for item in items if item["status"] == ChecklistStatus.IN_PROGRESS), None)
    return [
        {**item, "status": ChecklistStatus.PENDING.value}
        if item["status"] == ChecklistStatus.IN_PROGRESS and item is not running
        else item
        for item in items
    ]
