"""Todo lists that host agents keep with their own tools, converted to our checklist.

Models prefer the list tool of their host. When a hook reports a call of it, we copy the list: the copy outlives the
agent's context, people can watch it, and the stop hook holds the agent to it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from punchlist.checklist.lifecycle import OPEN, ChecklistStatus, parse_status
from punchlist.checklist.validation import MAX_ITEMS, MAX_TEXT_LENGTH
from punchlist.kernel.text import excerpt

_TOOLS: Final = {
    "TodoWrite": ("todos", "content"),  # Claude Code
    "update_plan": ("plan", "step"),  # Codex
    "write_todos": ("todos", "description"),  # Gemini CLI
    "todowrite": ("todos", "content"),  # opencode
}
"""By tool name: the argument that holds the list, and the field that holds an item's text."""
LIST_TOOLS: Final = frozenset(_TOOLS)
TOOL_OF_AGENT: Final = {"codex": "update_plan", "gemini": "write_todos", "opencode": "todowrite"}
"""By agent: the tool of its own list, where that has another name than ours."""
TASK_UPDATE: Final = "TaskUpdate"
TASK_TOOLS: Final = frozenset({"TaskCreate", TASK_UPDATE})
"""Claude Code's tools for one task at a time; the list is in `~/.claude/tasks/SESSION/1.json` and so on."""
_UNSAFE_IN_FOLDER: Final = re.compile(r"[^A-Za-z0-9_-]")
_TASK_FILE: Final = re.compile(r"[1-9][0-9]{0,8}\.json")
_MAX_TASKS: Final = 1_000
_MAX_TASK_SIZE: Final = 256 * 1024
_PRIORITY: Final = (
    ChecklistStatus.IN_PROGRESS,
    ChecklistStatus.PENDING,
    ChecklistStatus.COMPLETED,
    ChecklistStatus.CANCELLED,
)
CANCELLED_BY_AGENT: Final = "Cancelled in the agent's own list."


def parse_list(tool: str, arguments: Any) -> list[dict[str, Any]] | None:
    """The items of a list tool's arguments in the form of `TodoWrite`; None if there is no list.

    Invalid items are left out.
    """
    if tool not in _TOOLS or not isinstance(arguments, Mapping):
        return None
    key, text_field = _TOOLS[tool]
    raw = arguments.get(key)
    return _items(raw, text_field) if isinstance(raw, list) else None


def parse_tasks(texts: Iterable[str]) -> list[dict[str, Any]]:
    """The items of Claude Code's task files, in the order given."""
    return _items([task for text in texts if not _is_internal(task := _parse_json(text))], "subject")


def read_claude_tasks(environment: Mapping[str, str], session: str | None) -> list[dict[str, Any]] | None:
    """The tasks of a Claude Code session, oldest first; None if it has no task folder."""
    # Claude Code derives the folder's name in the same way; the result cannot leave the tasks folder.
    name = _UNSAFE_IN_FOLDER.sub("-", environment.get("CLAUDE_CODE_TASK_LIST_ID") or session or "")
    if not name:
        return None
    home = Path(environment.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    try:
        files = [file for file in (home / "tasks" / name).iterdir() if _TASK_FILE.fullmatch(file.name)]
    except OSError:
        return None
    files = sorted((file for file in files if file.is_file()), key=lambda file: int(file.stem))
    return parse_tasks(text for file in files[-_MAX_TASKS:] if (text := _read_task(file)) is not None)


def merge_copy(
    native: Sequence[Mapping[str, Any]],
    previous: Sequence[Mapping[str, Any]] = (),
    added_by_people: Collection[str] = (),
) -> list[Mapping[str, Any]]:
    """The next copy of a native list: its items, and the items (by id) that people added to the previous copy.

    The host cannot be asked to correct its list, so the list is made valid: one item stays in progress, and of too
    many items the open ones and the newest completed ones stay.
    """
    only_on_copy = Counter(item["content"] for item in previous) - Counter(item["content"] for item in native)
    kept = [_sendable(item) for item in previous if item["id"] in added_by_people and item["content"] in only_on_copy]
    return _single_in_progress([*_most_relevant(native, MAX_ITEMS - len(kept)), *kept])


def keep_texts(native: Sequence[Mapping[str, Any]], reworded: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The native list with the texts of the items that people reworded, by the text that they replaced."""
    left = dict(reworded)
    kept = []
    for item in native:
        copy = left.pop(item["content"], {})
        kept.append({**item, **{key: copy[key] for key in ("id", "content", "activeForm") if key in copy}})
    return kept


def keep_ended(native: Sequence[Mapping[str, Any]], ended: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The native list in which an open item is ended like the one of `ended` with the same text, each once."""
    left: dict[str, list[Mapping[str, Any]]] = {}
    for item in ended:
        left.setdefault(item["content"], []).append(item)
    for item in native:
        if item["status"] not in OPEN and left.get(item["content"]):
            left[item["content"]].pop(0)
    kept = []
    for item in native:
        same = left.get(item["content"]) if item["status"] in OPEN else None
        copy = same.pop(0) if same else {}
        kept.append({**item, **{key: copy[key] for key in ("id", "status", "reason") if key in copy}})
    return kept


def completed_ids(
    native: Sequence[Mapping[str, Any]], previous: Sequence[Mapping[str, Any]], among: Collection[str]
) -> list[str]:
    """Which of these items the native list has completed, by their text."""
    completed = {item["content"] for item in native if item["status"] == ChecklistStatus.COMPLETED}
    return [item["id"] for item in previous if item["id"] in among and item["content"] in completed]


def _read_task(file: Path) -> str | None:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_TASK_SIZE + 1)
    except OSError:
        return None
    return data.decode("utf-8", "replace") if len(data) <= _MAX_TASK_SIZE else None


def _is_internal(task: Any) -> bool:
    """Claude Code makes tasks for itself that its model does not see."""
    metadata = task.get("metadata") if isinstance(task, Mapping) else None
    return isinstance(metadata, Mapping) and bool(metadata.get("_internal"))


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _items(raw: Sequence[Any], text_field: str) -> list[dict[str, Any]]:
    return [item for entry in raw if isinstance(entry, Mapping) and (item := _item(entry, text_field)) is not None]


def _item(entry: Mapping[str, Any], text_field: str) -> dict[str, Any] | None:
    content, status = entry.get(text_field), entry.get("status")
    known = parse_status(status) if isinstance(status, str) else None
    if not isinstance(content, str) or not content.strip() or known is None:
        return None
    active = entry.get("activeForm")
    text = _one_line(content)
    active_form = _one_line(active) if isinstance(active, str) else ""
    item = {"content": text, "activeForm": active_form or text, "status": known.value}
    if known is ChecklistStatus.CANCELLED:
        reason = entry.get("reason")
        item["reason"] = (_one_line(reason) if isinstance(reason, str) else "") or CANCELLED_BY_AGENT
    return item


def _one_line(text: str) -> str:
    return excerpt(" ".join(text.split()), MAX_TEXT_LENGTH)


def _most_relevant(items: Sequence[Mapping[str, Any]], limit: int) -> list[Mapping[str, Any]]:
    """At most `limit` items in their order; the oldest completed ones are dropped first."""

    def rank(index: int) -> tuple[int, int]:
        priority = _PRIORITY.index(items[index]["status"])
        return priority, index if _PRIORITY[priority] in OPEN else -index

    chosen = sorted(range(len(items)), key=rank)[: max(0, limit)]
    return [items[index] for index in sorted(chosen)]


def _sendable(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**item, "status": ChecklistStatus.PENDING.value} if item["status"] == ChecklistStatus.DROPPED else item


def _single_in_progress(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    first = next((item for item in items if item["status"] == ChecklistStatus.IN_PROGRESS), None)
    return [
        {**item, "status": ChecklistStatus.PENDING.value}
        if item["status"] == ChecklistStatus.IN_PROGRESS and item is not first
        else item
        for item in items
    ]
