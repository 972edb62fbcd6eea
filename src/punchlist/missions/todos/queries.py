"""A mission's todos, looked at: in pages, one by its id, and how full the mission is."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_records
from punchlist.missions.changes import find_mission
from punchlist.missions.config.policy import policy_of
from punchlist.missions.model import Capacity, Mission, MissionTodo, Pillar
from punchlist.missions.todos import pagination
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos import validation as todo_validation
from punchlist.missions.todos.lifecycle import ACTIVE, OPEN, TodoStatus
from punchlist.missions.todos.pagination import NEWEST, EndedCursor, TodoPage
from punchlist.storage.store import Store, Transaction

_OF_AN_ID: Final = re.compile(r"[0-9a-f-]{1,36}", re.ASCII)


class TodoQueries:
    def __init__(self, store: Store) -> None:
        self._store = store

    def list(
        self,
        mission_slug: str,
        *,
        pillar: str | None = None,
        status: Collection[TodoStatus] | None = None,
        archived: bool = False,
        limit: int = pagination.DEFAULT_LIMIT,
        cursor: str | None = None,
    ) -> TodoPage:
        """A page of what is not archived; with `archived`, of all. A pillar's are its own, and those open that also
        affect it."""
        after = pagination.parse_cursor(cursor) if cursor is not None else None
        wanted = frozenset(TodoStatus) if status is None else frozenset(status)
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug)
            pillars = mission_records.pillars_of(tx, mission.id)
            own = _pillar(mission, pillars, pillar)
            unended = todo_repository.open_in_mission(tx, mission.id)
            items: list[MissionTodo] = []
            if not isinstance(after, EndedCursor) and wanted & OPEN:
                of_pillar = [todo for todo in unended if todo.status in wanted and (not own or _matters(todo, own))]
                items = sorted(
                    (t for t in of_pillar if after is None or pagination.sort_key(t) > after), key=pagination.sort_key
                )
            if len(items) <= limit and wanted - OPEN:
                items += todo_repository.ended_page(
                    tx,
                    mission_id=mission.id,
                    pillar_id=own.id if own else None,
                    status=next(iter(wanted - OPEN)) if len(wanted - OPEN) == 1 else None,
                    since="0" if archived else _archived_before(tx, mission),
                    after=after if isinstance(after, EndedCursor) else NEWEST,
                    most=limit + 1 - len(items),
                )
            return TodoPage(
                items[:limit],
                _capacity(mission, unended),
                pagination.cursor_after(items[limit - 1]) if len(items) > limit else None,
                todo_repository.escalated_todo_ids(tx, mission.id),
                {one.id: one.slug for one in pillars},
            )

    def get(self, todo_id: str) -> MissionTodo:
        with self._store.read() as tx:
            todo = todo_repository.find(tx, todo_id)
        if todo is None:
            raise NotFound(f"There is no mission todo {excerpt(todo_id)!r}.")
        return todo

    def find(self, mission_slug: str | None, wanted: str) -> MissionTodo:
        """By its id, or by the end of it if only one ends so; an open one before those that ended."""
        wanted = wanted.strip().lower()
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug) if mission_slug is not None else None
            ends = todo_repository.find_by_suffix(tx, wanted) if _OF_AN_ID.fullmatch(wanted) else []
        ends = [todo for todo in ends if mission is None or todo.mission_id == mission.id]
        meant = [todo for todo in ends if todo.id == wanted] or [t for t in ends if t.status in OPEN] or ends
        if len(meant) > 1:
            raise InvalidInput(f"{excerpt(wanted)!r} is the end of {len(meant)} ids; give more of it.")
        if not meant:
            where = f"Mission {mission.slug!r} has" if mission else "There is"
            raise NotFound(f"{where} no todo {excerpt(wanted)!r}.")
        return meant[0]

    def capacity(self, mission_slug: str) -> Capacity:
        with self._store.read() as tx:
            return mission_records.capacity(tx, find_mission(tx, mission_slug))


def _pillar(mission: Mission, pillars: builtins.list[Pillar], slug: str | None) -> Pillar | None:
    """The pillar of that name, archived or not."""
    if slug is None:
        return None
    found = next((pillar for pillar in pillars if pillar.slug == slug), None)
    if found is None:
        there = todo_validation.suggest_name(slug, (pillar.slug for pillar in pillars))
        raise NotFound(f"Mission {mission.slug!r} has no pillar {excerpt(slug)!r}.{there}")
    return found


def _matters(todo: MissionTodo, pillar: Pillar) -> bool:
    return todo.pillar_id == pillar.id or f'"{pillar.slug}"' in todo.also_affects


def _archived_before(tx: Transaction, mission: Mission) -> str:
    return timestamp(parse_timestamp(tx.now()) - timedelta(days=policy_of(mission).archive_after_days))


def _capacity(mission: Mission, unended: builtins.list[MissionTodo]) -> Capacity:
    policy, active = policy_of(mission), sum(1 for todo in unended if todo.status in ACTIVE)
    return Capacity(active, policy.active_todo_limit, len(unended) - active, policy.backlog_todo_limit)
