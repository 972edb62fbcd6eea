"""The lists that agents of others keep themselves, as our checklist would have them. Pure.

Many have a tool of their own for a list, and their models like it best. Where a hook tells of a call to
one, its list is copied: then it outlives the agent's memory, people can watch it, and it is finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from punchlist.checklist.lifecycle import Status, status_named
from punchlist.checklist.rules import LONGEST_TEXT, MAX_ITEMS
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
    """What `TodoWrite` would be given; None where there is no list in it.

    Whoever made the call is not there to put anything right. So what does not fit is made to fit: an item
    that was given up is left out, of several in progress one is, and of too many the first that are open stay.
    """
    if tool not in _TOOLS or not isinstance(arguments, Mapping):
        return None
    key, title = _TOOLS[tool]
    raw = arguments.get(key)
    if not isinstance(raw, list):
        return None
    return _list(raw, title)


def own_tasks(written: Iterable[str]) -> list[dict[str, Any]]:
    """The same of the files in which Claude Code keeps its tasks, one each, in their order."""
    return _list([_parsed(one) for one in written], "subject")


def _parsed(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return None


def _list(raw: Sequence[Any], title: str) -> list[dict[str, Any]]:
    items = [item for one in raw if isinstance(one, Mapping) and (item := _item(one, title)) is not None]
    return _one_running(_few(items))


def _item(one: Mapping[str, Any], title: str) -> dict[str, Any] | None:
    content, status = one.get(title), one.get("status")
    known = status_named(status) if isinstance(status, str) else None
    if not isinstance(content, str) or not content.strip() or known is None:
        return None
    active = one.get("activeForm")
    text = _fitting(content)
    doing = _fitting(active) if isinstance(active, str) else ""
    return {"content": text, "activeForm": doing or text, "status": known.value}


def _fitting(text: str) -> str:
    return excerpt(" ".join(text.split()), LONGEST_TEXT)


def _few(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    over = len(items) - MAX_ITEMS
    if over <= 0:
        return items
    done = [index for index, item in enumerate(items) if item["status"] == Status.COMPLETED][:over]
    return [item for index, item in enumerate(items) if index not in done][:MAX_ITEMS]


def _one_running(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    running = [item for item in items if item["status"] == Status.IN_PROGRESS]
    for item in running[1:]:
        item["status"] = Status.PENDING.value
    return items
