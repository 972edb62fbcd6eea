"""A list as it was after any of its changes, rebuilt from its events: what a person replays.

Plans and checklists are small and are replayed whole. Of a mission, one query reads the statuses, and only the todos
that are shown are replayed, so that a long history costs little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.checklist.replay import replay_checklist
from punchlist.checklist.repository import checklist_stream
from punchlist.errors import StoreDamaged
from punchlist.kernel.camel_json import camel_json
from punchlist.missions.changes import event_stream, find_mission
from punchlist.missions.model import MissionTodo
from punchlist.missions.todos import replay as todo_replay
from punchlist.missions.todos import repository as todo_repository
from punchlist.plan.model import plan_stream
from punchlist.plan.replay import replay_todos
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.views import moment_repository
from punchlist.views.moment_repository import ListChange

AROUND: Final = 12
"""How many changes before and after the moment are listed."""
MAX_ITEMS: Final = 50
"""How many todos of a mission are shown per status."""


class ItemThen(NamedTuple):
    id: str
    title: str
    status: str


@dataclass(frozen=True, slots=True)
class Moment:
    version: int
    """The number of the last change that counts; 0 before the first one."""
    newest: int
    items: Sequence[ItemThen]
    counts: Mapping[str, int]
    """All items by status, also those that are not shown."""
    changes: Sequence[ListChange]
    """The changes around the moment, oldest first."""
    titles: Mapping[str, str]
    """Of the subjects of the changes, where they are items."""

    @property
    def change(self) -> ListChange | None:
        """The change that the moment follows."""
        return next((each for each in self.changes if each.version == self.version), None)

    def as_json(self) -> dict[str, Any]:
        return {
            **camel_json(self, "version", "newest"),
            "items": [camel_json(item) for item in self.items],
            "counts": dict(self.counts),
            "changes": [{**camel_json(change), "title": self.titles.get(change.subject)} for change in self.changes],
        }


Items = Callable[[Transaction, str, int], Sequence[ItemThen]]


def plan_moment(store: Store, turn_id: str, *, version: int | None = None, at: str | None = None) -> Moment:
    """The plan of a turn after a change, or at a time; without either, as it is."""

    def items(tx: Transaction, stream: str, version: int) -> list[ItemThen]:
        todos = replay_todos(turn_id, event_log.read_stream(tx, stream)[:version])
        ordered = sorted(todos.values(), key=lambda todo: (todo.priority, todo.created_at))
        return [ItemThen(todo.id, todo.title, todo.status.value) for todo in ordered]

    return _list_moment(store, plan_stream(turn_id), items, version, at)


def checklist_moment(
    store: Store, conversation_id: str, *, version: int | None = None, at: str | None = None
) -> Moment:
    """The checklist of a session after a change, or at a time; without either, as it is."""

    def items(tx: Transaction, stream: str, version: int) -> list[ItemThen]:
        event = event_log.at_version(tx, stream, version)
        found = replay_checklist([event]).items if event else ()
        return [ItemThen(item.id, item.content, item.status.value) for item in found]

    return _list_moment(store, checklist_stream(conversation_id), items, version, at)


def _list_moment(store: Store, stream: str, items: Items, version: int | None, at: str | None) -> Moment:
    with store.read() as tx:
        newest, chosen = _version(tx, stream, version, at)
        with _replaying(stream):
            found = items(tx, stream, chosen)
            latest = found if chosen == newest else items(tx, stream, newest)
        changes = _changes_around(tx, stream, chosen)
    titles = {item.id: item.title for item in (*latest, *found)}
    return Moment(chosen, newest, found, Counter(item.status for item in found), changes, titles)


def mission_moment(store: Store, mission_slug: str, *, version: int | None = None, at: str | None = None) -> Moment:
    """The todos of a mission after a change, or at a time; without either, as they are."""
    with store.read() as tx:
        stream = event_stream(find_mission(tx, mission_slug).id)
        newest, chosen = _version(tx, stream, version, at)
        counts, shown = Counter[str](), []
        for id, status in moment_repository.statuses_at(tx, stream, chosen):
            counts[status] += 1
            if counts[status] <= MAX_ITEMS:
                shown.append(id)
        items = []
        for id in shown:
            events = moment_repository.todo_events(tx, stream, id, chosen)
            with _replaying(stream):
                items += [_item(todo) for todo in todo_replay.replay(events).values()]
        changes = _changes_around(tx, stream, chosen)
        titles = {item.id: item.title for item in items}
        for id in {change.subject for change in changes} - titles.keys():
            if found := todo_repository.find(tx, id):
                titles[id] = found.title
    return Moment(chosen, newest, items, counts, changes, titles)


def _item(todo: MissionTodo) -> ItemThen:
    if not isinstance(todo.title, str):
        raise TypeError("its events contain no title")
    return ItemThen(todo.id, todo.title, todo.status.value)


@contextmanager
def _replaying(stream: str) -> Iterator[None]:
    """Events whose content is missing or was changed cannot be replayed."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise StoreDamaged.not_as_written(f"The history of {stream}") from error


def _version(tx: Transaction, stream: str, version: int | None, at: str | None) -> tuple[int, int]:
    """The newest version, and the one that was asked for."""
    newest = moment_repository.newest_version(tx, stream) or 0
    if version is None and at is not None:
        version = moment_repository.version_at(tx, stream, at) or 0
    return newest, newest if version is None else max(0, min(version, newest))


def _changes_around(tx: Transaction, stream: str, version: int) -> list[ListChange]:
    after = max(0, version - AROUND - 1)
    return moment_repository.changes(tx, stream, after, 2 * AROUND + 1)
