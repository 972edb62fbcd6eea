"""Recommendations: add, list, accept and decline (M4, M10).

Accepting one performs its action as the caller, in the same transaction, so limits and permissions are those of the
action. What cannot be performed leaves the recommendation open.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.text import block_problem
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite, find_mission, find_pillar, lock_mission
from punchlist.missions.model import MissionScope, MissionTodo, Pillar, TodoChange
from punchlist.missions.recommendations import repository as recommendation_repository
from punchlist.missions.recommendations.model import (
    MAX_LENGTH,
    NOTE,
    RECOMMENDATION,
    Recommendation,
    RecommendationAction,
)
from punchlist.missions.recommendations.transitions import action_text, add_recommendation, decide
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.edits import edit_todo, edited_fields, label_todo, swap_todos
from punchlist.missions.todos.lifecycle import PartAction, TodoAction, TodoPriority
from punchlist.missions.todos.link_rules import named_link
from punchlist.missions.todos.links import add_link, remove_link
from punchlist.missions.todos.service import apply_update
from punchlist.missions.todos.transitions import find_todo
from punchlist.missions.todos.validation import check_mission, check_pillar
from punchlist.storage.store import Store, Transaction

MAX_LISTED: Final = 1_000


class RecommendationView(NamedTuple):
    """A recommendation with the names of what it is about."""

    recommendation: Recommendation
    pillar_slug: str | None
    todo: MissionTodo | None

    @property
    def action(self) -> str:
        return action_text(self.recommendation, self.todo)


class Decided(NamedTuple):
    """A decided recommendation, and the change that accepting it made."""

    recommendation: Recommendation
    change: TodoChange | None = None


Performer = Callable[[MissionWrite, MissionTodo, Pillar, Mapping[str, Any], str], TodoChange]
"""Performs the action of an accepted recommendation: its todo, pillar, arguments and reason."""


def _update(
    action: TodoAction, write: MissionWrite, todo: MissionTodo, pillar: Pillar, given: Mapping[str, Any], reason: str
) -> TodoChange:
    priority = TodoPriority(given["priority"]) if "priority" in given else None
    return apply_update(write, todo, pillar, action, reason, deadline=given.get("deadline"), priority=priority)


def _edit(write: MissionWrite, todo: MissionTodo, pillar: Pillar, given: Mapping[str, Any], reason: str) -> TodoChange:
    return edit_todo(write, todo, pillar, edited_fields(given), reason)


def _label(write: MissionWrite, todo: MissionTodo, pillar: Pillar, given: Mapping[str, Any], reason: str) -> TodoChange:
    return label_todo(write, todo, pillar, given["add"], given["remove"], reason)


def _swap(write: MissionWrite, todo: MissionTodo, _: Pillar, given: Mapping[str, Any], reason: str) -> TodoChange:
    return swap_todos(write, todo, given["otherId"], reason)


def _link(write: MissionWrite, todo: MissionTodo, _: Pillar, given: Mapping[str, Any], reason: str) -> TodoChange:
    return TodoChange(todo, add_link(write, todo, named_link(given["link"], given["otherId"]), reason))


def _unlink(write: MissionWrite, todo: MissionTodo, _: Pillar, given: Mapping[str, Any], reason: str) -> TodoChange:
    remove_link(write, todo, named_link(given["link"], given["otherId"]), reason)
    return TodoChange(todo)


PERFORMERS: Final[dict[str, Performer]] = {
    **{
        action.value: partial(_update, action)
        for action in (
            TodoAction.PROMOTE,
            TodoAction.DEMOTE,
            TodoAction.START,
            TodoAction.EXTEND,
            TodoAction.REPRIORITIZE,
        )
    },
    TodoAction.EDIT.value: _edit,
    "label": _label,
    "swap": _swap,
    PartAction.LINK.value: _link,
    PartAction.UNLINK.value: _unlink,
}
"""By kind. Accepting a recommendation of another kind only records the decision."""


class Recommendations:
    def __init__(self, store: Store) -> None:
        self._store = store

    def add(
        self,
        scope: MissionScope,
        mission_slug: str,
        text: str,
        *,
        pillar_slug: str | None = None,
        todo_id: str | None = None,
    ) -> Recommendation:
        """Recommend something in words. An action that was refused is recommended with `add_recommendation`."""
        RECOMMENDATION.check_role(RecommendationAction.RECOMMEND, scope.actor.role)
        text = _parse("text", text)
        with self._store.write() as tx:
            write = self._lock(tx, scope, mission_slug)
            todo = find_todo(tx, write.mission, todo_id) if todo_id is not None else None
            slug = pillar_slug or scope.pillar_slug
            pillar = find_pillar(tx, write.mission, slug) if slug is not None else None
            if todo is not None:
                pillar = mission_repository.pillar(tx, todo.pillar_id)
            if pillar is not None:
                check_pillar(scope, pillar.slug)
            return add_recommendation(write, pillar, todo, NOTE, {}, text)

    def list(self, mission_slug: str, *, decided: bool = False) -> builtins.list[RecommendationView]:
        """The open ones, oldest first; `decided` includes the others, of which there may be `MAX_LISTED`."""
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug)
            if decided:
                found = recommendation_repository.newest(tx, mission.id, MAX_LISTED)[::-1]
            else:
                found = recommendation_repository.open_in_mission(tx, mission.id)
            return views(tx, found)

    def accept(self, scope: MissionScope, mission_slug: str, number: int, reason: str) -> Decided:
        """Accept a recommendation and perform its action, if it has one."""
        reason = _parse("reason", reason)
        with self._store.write() as tx:
            write = self._lock(tx, scope, mission_slug)
            recommendation = _find(write, number)
            decided = decide(write, recommendation, RecommendationAction.ACCEPT, reason)
            perform = PERFORMERS.get(decided.kind)
            if perform is None or decided.todo_id is None:
                return Decided(decided)
            todo = find_todo(tx, write.mission, decided.todo_id)
            pillar = mission_repository.pillar(tx, todo.pillar_id)
            assert pillar is not None
            why = f"Recommendation {decided.number} of {decided.created_by}, accepted: {reason}"
            return Decided(decided, perform(write, todo, pillar, decided.arguments, why[:MAX_LENGTH]))

    def decline(self, scope: MissionScope, mission_slug: str, number: int, reason: str) -> Decided:
        reason = _parse("reason", reason)
        with self._store.write() as tx:
            write = self._lock(tx, scope, mission_slug)
            return Decided(decide(write, _find(write, number), RecommendationAction.DECLINE, reason))

    def _lock(self, tx: Transaction, scope: MissionScope, mission_slug: str) -> MissionWrite:
        check_mission(scope, mission_slug)
        return lock_mission(tx, scope, mission_slug)


def views(tx: Transaction, found: builtins.list[Recommendation]) -> builtins.list[RecommendationView]:
    slugs = {
        id: pillar.slug
        for id in {one.pillar_id for one in found}
        if id is not None and (pillar := mission_repository.pillar(tx, id)) is not None
    }
    todos = {id: todo_repository.find(tx, id) for id in {one.todo_id for one in found} if id is not None}
    return [RecommendationView(one, slugs.get(one.pillar_id or ""), todos.get(one.todo_id or "")) for one in found]


def _find(write: MissionWrite, number: int) -> Recommendation:
    found = recommendation_repository.by_number(write.tx, write.mission.id, number)
    if found is None:
        slug = write.mission.slug
        raise NotFound(
            f"Mission {slug!r} has no recommendation {number}. List them with "
            f"`punchlist mission recommendation list {slug}`."
        )
    return found


def _parse(field: str, text: str) -> str:
    if problem := block_problem(text, max_length=MAX_LENGTH, min_length=1):
        raise InvalidInput(f"{field}: {problem}")
    return text.strip()
