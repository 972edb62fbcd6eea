"""References to the todos of a plan: by id, by a part of it, by number, or by title. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from punchlist.errors import NotFound
from punchlist.kernel.references import MIN_PART, matching_ids
from punchlist.kernel.text import excerpt, visible
from punchlist.plan.lifecycle import OPEN, ConditionKind
from punchlist.plan.model import NewCondition
from punchlist.plan.validation import normalized_title

MAX_LISTED: Final = 5
"""Open todos that an error lists."""


def resolve_id(rows: Sequence[Sequence[Any]], reference: str) -> str:
    """The id of the todo that a reference means. `rows` are id, status and title of all todos, in order."""
    found = matching_ids([row[0] for row in rows], reference)
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{len(found)} todos have an id with {visible(reference)!r}. {_open_todos(rows)}")
    raise NotFound(
        f"There is no todo {excerpt(reference)!r} in this turn's plan. Give its number, its id, or at least {MIN_PART} "
        f"characters of its id. {_open_todos(rows)}"
    )


def _open_todos(rows: Sequence[Sequence[Any]]) -> str:
    numbered = [
        f"{number} “{excerpt(visible(title), 60)}”"
        for number, (_, status, title) in enumerate(rows, 1)
        if status in OPEN
    ]
    if not numbered:
        return "It has no open todos."
    more = f" and {len(numbered) - MAX_LISTED} more; list_todo has all" if len(numbered) > MAX_LISTED else ""
    return f"Open todos: {', '.join(numbered[:MAX_LISTED])}{more}."


class TodoReferences:
    """Resolves what the todos of a turn wait for: by id, by title if it is unique, else as `resolve_id`."""

    def __init__(self, existing: Iterable[Sequence[Any]], new: Iterable[tuple[str, str]] = ()) -> None:
        """`existing` has id, status and title of the plan's todos, `new` id and title of those in the same call."""
        self._ids: list[str] = []
        self._new: dict[str, list[str]] = {}
        self._open: dict[str, list[str]] = {}
        self._ended: dict[str, list[str]] = {}
        for todo_id, status, title in existing:
            self._ids.append(todo_id)
            (self._open if status in OPEN else self._ended).setdefault(normalized_title(title), []).append(todo_id)
        for todo_id, title in new:
            self._ids.append(todo_id)
            self._new.setdefault(normalized_title(title), []).append(todo_id)
        self._known = frozenset(self._ids)

    def set_order(self, ids: Sequence[str]) -> None:
        """All ids in the order of the plan, in which numbers count; that of creation if it is not called."""
        self._ids = list(ids)

    def resolve(self, condition: NewCondition, own_id: str, where: str, problems: list[str]) -> NewCondition:
        """The condition of the todo `own_id`, with the id of the todo it references."""
        if condition.kind is not ConditionKind.TODO:
            return condition
        return NewCondition(ConditionKind.TODO, self._find(condition.subject, own_id, where, problems) or "")

    def _find(self, reference: str, own_id: str, where: str, problems: list[str]) -> str | None:
        if reference in self._known and reference != own_id:
            return reference
        title = normalized_title(reference)
        for group in (self._new, self._open):
            others = [todo_id for todo_id in group.get(title, ()) if todo_id != own_id]
            if len(others) > 1:
                problems.append(f"{where}: {len(others)} todos have the title {_quoted(reference)}; give an id instead")
                return None
            if others:
                return others[0]
        if title in self._ended:
            # Any of them will do: an ended todo blocks nothing.
            return self._ended[title][-1]
        if reference == own_id or own_id in (*self._new.get(title, ()), *self._open.get(title, ())):
            problems.append(f"{where}: a todo cannot wait for itself")
            return None
        return self._find_short(reference, own_id, where, problems)

    def _find_short(self, reference: str, own_id: str, where: str, problems: list[str]) -> str | None:
        found = matching_ids(self._ids, reference)
        if len(found) == 1 and found[0] != own_id:
            return found[0]
        if len(found) > 1:
            problems.append(f"{where}: {len(found)} todos have an id with {_quoted(reference)}; give more of it")
        elif found:
            problems.append(f"{where}: a todo cannot wait for itself")
        else:
            problems.append(
                f"{where}: this turn has no todo {_quoted(reference)}; give the id, the number or the exact title of "
                "another todo"
            )
        return None


def _quoted(reference: str) -> str:
    return f"“{excerpt(reference)}”"
