"""Read access to mission todos: pages, one by id, and capacity."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import find_mission
from punchlist.missions.config.policy import policy_of
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.model import Capacity, Mission, MissionTodo, Pillar
from punchlist.missions.todos import pagination
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import ACTIVE, OPEN, TodoStatus
from punchlist.missions.todos.pagination import NEWEST, EndedCursor, SubItems, TodoPage
from punchlist.missions.todos.validation import suggest_name
from punchlist.storage.store import Store, Transaction

_ID_SUFFIX: Final = re.compile(r"[0-9a-f-]{1,36}", re.ASCII)


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
        label: str | None = None,
        limit: int = pagination.DEFAULT_LIMIT,
        cursor: str | None = None,
    ) -> TodoPage:
        """One page; `archived` includes archived todos. `pillar` selects its todos and open ones that affect it."""
        after = pagination.parse_cursor(cursor) if cursor is not None else None
        wanted = frozenset(TodoStatus) if status is None else frozenset(status)
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug)
            pillars = mission_repository.pillars_of(tx, mission.id)
            selected = _pillar(mission, pillars, pillar)
            open_todos = todo_repository.open_in_mission(tx, mission.id)
            items: list[MissionTodo] = []
            if not isinstance(after, EndedCursor) and wanted & OPEN:
                matching = [
                    todo
                    for todo in open_todos
                    if todo.status in wanted
                    and (not selected or _affects(todo, selected))
                    and (label is None or label in todo.label_names)
                ]
                items = sorted(
                    (t for t in matching if after is None or pagination.sort_key(t) > after), key=pagination.sort_key
                )
            if len(items) <= limit and wanted - OPEN:
                items += todo_repository.ended_page(
                    tx,
                    mission_id=mission.id,
                    pillar_id=selected.id if selected else None,
                    status=next(iter(wanted - OPEN)) if len(wanted - OPEN) == 1 else None,
                    since="0" if archived else archive_limit(tx, mission),
                    after=after if isinstance(after, EndedCursor) else NEWEST,
                    limit=limit + 1 - len(items),
                    label=label,
                )
            return TodoPage(
                items[:limit],
                _capacity(mission, open_todos),
                pagination.cursor_after(items[limit - 1]) if len(items) > limit else None,
                frozenset(escalation_repository.escalated_todo_ids(tx, mission.id)),
                {pillar.id: pillar.slug for pillar in pillars},
                sub_items(tx, mission),
                blocked_by(tx, mission),
            )

    def get(self, todo_id: str) -> MissionTodo:
        with self._store.read() as tx:
            todo = todo_repository.find(tx, todo_id)
        if todo is None:
            raise NotFound(f"There is no mission todo {excerpt(todo_id)!r}.")
        return todo

    def find(self, mission_slug: str | None, id_or_suffix: str) -> MissionTodo:
        """By id, or by a unique end of the id; open todos take precedence over ended ones."""
        id_or_suffix = id_or_suffix.strip().lower()
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug) if mission_slug is not None else None
            candidates = todo_repository.find_by_suffix(tx, id_or_suffix) if _ID_SUFFIX.fullmatch(id_or_suffix) else []
        candidates = [todo for todo in candidates if mission is None or todo.mission_id == mission.id]
        matches = (
            [todo for todo in candidates if todo.id == id_or_suffix]
            or [t for t in candidates if t.status in OPEN]
            or candidates
        )
        if len(matches) > 1:
            raise InvalidInput(
                f"{excerpt(id_or_suffix)!r} matches the ends of {len(matches)} ids; give more characters."
            )
        if not matches:
            where = f"Mission {mission.slug!r} has" if mission else "There is"
            raise NotFound(f"{where} no todo {excerpt(id_or_suffix)!r}.")
        return matches[0]

    def capacity(self, mission_slug: str) -> Capacity:
        with self._store.read() as tx:
            return mission_repository.capacity(tx, find_mission(tx, mission_slug))


def sub_items(tx: Transaction, mission: Mission) -> dict[str, SubItems]:
    """The progress of the sub-items of a mission, by the id of their parent."""
    counts: dict[str, SubItems] = {}
    for parent_id, status, count in todo_repository.child_counts(tx, mission.id):
        counts[parent_id] = counts.get(parent_id, SubItems()).add(status, count)
    return counts


def blocked_by(tx: Transaction, mission: Mission) -> dict[str, builtins.list[str]]:
    """The ids of the open todos that block a todo, by its id."""
    found: dict[str, builtins.list[str]] = {}
    for blocked, blocker in todo_repository.open_blocks(tx, mission.id):
        found.setdefault(blocked, []).append(blocker)
    return found


def _pillar(mission: Mission, pillars: builtins.list[Pillar], slug: str | None) -> Pillar | None:
    """The pillar with that slug; archived ones count."""
    if slug is None:
        return None
    found = next((pillar for pillar in pillars if pillar.slug == slug), None)
    if found is None:
        hint = suggest_name(slug, (pillar.slug for pillar in pillars))
        raise NotFound(f"Mission {mission.slug!r} has no pillar {excerpt(slug)!r}.{hint}")
    return found


def _affects(todo: MissionTodo, pillar: Pillar) -> bool:
    return todo.pillar_id == pillar.id or f'"{pillar.slug}"' in todo.also_affects


def archive_limit(tx: Transaction, mission: Mission) -> str:
    """Todos that ended before are archived."""
    return timestamp(parse_timestamp(tx.now()) - timedelta(days=policy_of(mission).archive_after_days))


def _capacity(mission: Mission, open_todos: builtins.list[MissionTodo]) -> Capacity:
    policy, active = policy_of(mission), sum(1 for todo in open_todos if todo.status in ACTIVE)
    return Capacity(active, policy.active_todo_limit, len(open_todos) - active, policy.backlog_todo_limit)
