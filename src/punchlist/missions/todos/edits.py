"""Edits of mission todos: change their fields, swap two of them between the lists, show an archived one again (M18).

An edit is one event with the old and the new values. An editor may send the version it has read: when the todo has
changed since, the edit is refused and changes nothing. While an owner works on the todo, the edit is posted to its
chat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, cast

from punchlist.conversations.model import NoticeKind
from punchlist.errors import Conflict, IllegalTransition, InvalidInput
from punchlist.kernel.events import Role, canonical_json
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.changes import MissionWrite
from punchlist.missions.chats import block_quote
from punchlist.missions.escalations.transitions import OVERDUE
from punchlist.missions.model import MissionScope, MissionTodo, NewMissionTodo, Pillar, TodoChange
from punchlist.missions.todos.lifecycle import MISSION, TodoAction, TodoPriority, TodoStatus
from punchlist.missions.todos.queries import TodoQueries, archive_limit
from punchlist.missions.todos.recommend import recommend
from punchlist.missions.todos.todo_drafts import check_parent, other_pillars, parse_new_deadline, validate_check
from punchlist.missions.todos.transitions import advance_todo, answer_escalations, find_todo, lock_todo
from punchlist.missions.todos.validation import (
    MAX_REASON_LENGTH,
    content_problems,
    labels_json,
    parse_block,
)


class EditedFields(TypedDict, total=False):
    """The fields to change, with their new values."""

    title: str
    description: str
    justification: str
    completion_criteria: str
    deadline: str | None
    priority: TodoPriority
    also_affects: Sequence[str]
    check: Mapping[str, Any] | None
    labels: Sequence[str]
    parent_id: str | None


def edited_fields(stored: Mapping[str, Any]) -> EditedFields:
    """Fields from JSON, as a recommendation keeps them."""
    fields: dict[str, Any] = dict(stored)
    if "priority" in fields:
        fields["priority"] = TodoPriority(fields["priority"])
    return cast("EditedFields", fields)


_TEXTS: Final = ("title", "description", "justification", "completion_criteria")
_NAMES: Final = {
    "completion_criteria": "completion criteria",
    "also_affects": "affected pillars",
    "completion_check": "check",
    "parent_id": "parent",
}


class TodoEdits(TodoQueries):
    def edit(
        self,
        scope: MissionScope,
        mission_slug: str,
        todo_id: str,
        fields: EditedFields,
        reason: str,
        *,
        expected_version: str | None = None,
    ) -> TodoChange:
        """Change fields of an open todo. An owner's edit becomes a recommendation."""
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        if not fields:
            raise InvalidInput("edit: name at least one field to change")
        if scope.actor.role is Role.OWNER:
            recommend(self._store, scope, mission_slug, todo_id, "edit", reason, dict(fields))
        MISSION.check_role(TodoAction.EDIT, scope.actor.role)
        with self._store.write() as tx:
            write, todo, pillar = lock_todo(tx, scope, mission_slug, todo_id)
            _check_version(todo, expected_version)
            return edit_todo(write, todo, pillar, fields, reason)

    def label(
        self,
        scope: MissionScope,
        mission_slug: str,
        todo_id: str,
        reason: str,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> TodoChange:
        """Add and remove labels."""
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        if not add and not remove:
            raise InvalidInput("labels: name at least one label to add or remove")
        if scope.actor.role is Role.OWNER:
            given = {"add": list(add), "remove": list(remove)}
            recommend(self._store, scope, mission_slug, todo_id, "label", reason, given)
        MISSION.check_role(TodoAction.EDIT, scope.actor.role)
        with self._store.write() as tx:
            write, todo, pillar = lock_todo(tx, scope, mission_slug, todo_id)
            return label_todo(write, todo, pillar, add, remove, reason)

    def swap(self, scope: MissionScope, mission_slug: str, todo_id: str, other_id: str, reason: str) -> TodoChange:
        """Exchange a pending todo with one of the backlog, which needs no free slot on either list."""
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        if scope.actor.role is Role.OWNER:
            recommend(self._store, scope, mission_slug, todo_id, "swap", reason, {"otherId": other_id})
        MISSION.check_role(TodoAction.PROMOTE, scope.actor.role)
        with self._store.write() as tx:
            write, todo, _ = lock_todo(tx, scope, mission_slug, todo_id)
            return swap_todos(write, todo, other_id, reason)

    def unarchive(self, scope: MissionScope, mission_slug: str, todo_id: str, reason: str) -> TodoChange:
        """Show an archived todo in the default views again, for as long as one that has just ended."""
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        MISSION.check_role(TodoAction.UNARCHIVE, scope.actor.role)
        with self._store.write() as tx:
            write, todo, _ = lock_todo(tx, scope, mission_slug, todo_id)
            MISSION.advance(todo.status, TodoAction.UNARCHIVE, scope.actor.role)
            if max(todo.ended_at or "", todo.unarchived_at or "") >= archive_limit(tx, write.mission):
                raise IllegalTransition(f"“{visible(todo.title)}” ({todo.id}) is not archived.")
            return TodoChange(advance_todo(write, todo, TodoAction.UNARCHIVE, reason, unarchived_at=tx.now()))


def _move(write: MissionWrite, todo: MissionTodo, reason: str, other: MissionTodo) -> MissionTodo:
    action = TodoAction.DEMOTE if todo.status is TodoStatus.PENDING else TodoAction.PROMOTE
    why = excerpt(f"swapped with “{visible(other.title)}” ({other.id}): {reason}", MAX_REASON_LENGTH)
    return advance_todo(write, todo, action, why)


def _check_version(todo: MissionTodo, expected: str | None) -> None:
    if expected is not None and expected.strip().lower() != todo.version:
        raise Conflict(
            f"“{visible(todo.title)}” ({todo.id}) has changed: you edit version {excerpt(expected)}, it is now "
            f"{todo.version}. Read it again, then repeat your edit."
        )


def swap_todos(write: MissionWrite, todo: MissionTodo, other_id: str, reason: str) -> TodoChange:
    """`TodoEdits.swap` inside the caller's transaction."""
    other = find_todo(write.tx, write.mission, other_id)
    if {todo.status, other.status} != {TodoStatus.PENDING, TodoStatus.BACKLOG}:
        raise IllegalTransition(
            f"A swap needs one pending todo and one in the backlog. “{visible(todo.title)}” is {todo.status}, "
            f"“{visible(other.title)}” is {other.status}."
        )
    changed = {one.id: _move(write, one, reason, of) for one, of in ((todo, other), (other, todo))}
    return TodoChange(changed[todo.id], other=changed[other.id])


def label_todo(
    write: MissionWrite, todo: MissionTodo, pillar: Pillar, add: Sequence[str], remove: Sequence[str], reason: str
) -> TodoChange:
    """`TodoEdits.label` inside the caller's transaction."""
    if missing := [name for name in remove if name not in todo.label_names]:
        raise InvalidInput(f"labels: “{visible(todo.title)}” has no label {excerpt(missing[0])!r}")
    kept = [name for name in todo.label_names if name not in remove]
    return edit_todo(write, todo, pillar, {"labels": [*kept, *add]}, reason)


def edit_todo(write: MissionWrite, todo: MissionTodo, pillar: Pillar, fields: EditedFields, reason: str) -> TodoChange:
    """`TodoEdits.edit` inside the caller's transaction."""
    scope = write.scope
    MISSION.advance(todo.status, TodoAction.EDIT, scope.actor.role)
    wanted = _columns(write, todo, pillar, fields)
    changes = {name: value for name, value in wanted.items() if getattr(todo, name) != value}
    if not changes:
        return TodoChange(todo, "It has these values already; nothing was changed.")
    edited = tuple(changes)
    before = {name: getattr(todo, name) for name in edited}
    if "deadline" in changes:
        changes["overdue_at"] = None
    if "completion_check" in changes:
        changes["check_result"] = None
    changed = advance_todo(write, todo, TodoAction.EDIT, reason, guard=lambda _: {"before": before}, **changes)
    if "deadline" in changes:
        answer_escalations(write, todo, f"deadline set to {changed.deadline or 'none'}: {reason}", OVERDUE)
    if todo.status is TodoStatus.IN_PROGRESS:
        names = ", ".join(_NAMES.get(name, name) for name in edited)
        text = f"{scope.actor.role.described} edited “{visible(changed.title)}” (TODO {todo.id}): {names}."
        note = f"{text}\n{block_quote(reason)}"
        write.post(NoticeKind.NOTE, note, pillar.todo_conversation_id, todo_id=todo.id)
    return TodoChange(changed)


def _columns(write: MissionWrite, todo: MissionTodo, pillar: Pillar, fields: EditedFields) -> dict[str, Any]:
    """The new values of the columns. Reports all problems at once."""
    draft = NewMissionTodo(
        pillar.slug,
        fields.get("title", todo.title),
        fields.get("description", ""),
        fields.get("justification", ""),
        fields.get("completion_criteria", ""),
        check=fields.get("check"),
        labels=tuple(fields.get("labels", ())),
    )
    problems = content_problems(draft)
    columns: dict[str, Any] = {name: getattr(draft, name).strip() for name in _TEXTS if name in fields}
    if "priority" in fields:
        columns["priority"] = fields["priority"]
    if "labels" in fields:
        columns["labels"] = labels_json(draft.labels)
    if "check" in fields:
        if draft.check is not None:
            validate_check(write.tx, write.scope, write.mission, draft.check, problems)
        columns["completion_check"] = canonical_json(dict(draft.check)) if draft.check is not None else None
    columns |= _references(write, todo, pillar, fields, problems)
    if problems:
        raise InvalidInput(problems)
    return columns


def _references(
    write: MissionWrite, todo: MissionTodo, pillar: Pillar, fields: EditedFields, problems: list[str]
) -> dict[str, Any]:
    """Columns that depend on other rows of the mission or on the time."""
    tx, mission, columns = write.tx, write.mission, dict[str, Any]()
    if "also_affects" in fields:
        others = other_pillars(tx, mission, pillar, tuple(fields["also_affects"]), problems)
        columns["also_affects"] = json.dumps(others, ensure_ascii=False)
    if "parent_id" in fields:
        columns["parent_id"] = fields["parent_id"]
        if fields["parent_id"] is not None:
            check_parent(tx, mission, pillar, fields["parent_id"], problems, child=todo)
    if "deadline" in fields:
        try:
            columns["deadline"] = parse_new_deadline(write, fields["deadline"]) if fields["deadline"] else None
        except InvalidInput as error:
            problems += error.problems
    return columns
