"""A mission's board: columns with their counts, capacity, and for each card its newest run and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import did_you_mean, excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import find_mission
from punchlist.missions.config.policy import Cadence, cadence_of, next_cycle, policy_of
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.metrics.service import Metrics, MetricView
from punchlist.missions.model import Capacity, Mission, MissionTodo, PillarState
from punchlist.missions.service import Missions
from punchlist.missions.todos import pagination
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import ACTIVE, OPEN, TodoPriority, TodoStatus
from punchlist.missions.todos.pagination import MAX_LIMIT, NEWEST, EndedCursor, TodoPage
from punchlist.missions.todos.queries import blocked_by, sub_items
from punchlist.missions.todos.tools import list_json
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run
from punchlist.storage.store import Store, Transaction
from punchlist.views import mission_repository as view_repository
from punchlist.views.mission_repository import MAX_REQUESTS

MAX_SEARCH_LENGTH: Final = 200
_PILLAR_FIELDS: Final = ("id", "slug", "name", "description", "conversation_id", "todo_conversation_id")
_RESTING: Final = frozenset({RunStatus.WAITING, RunStatus.PAUSED, RunStatus.FAILED, RunStatus.STOPPED})


class CardWait(NamedTuple):
    """Why a card does not advance."""

    kind: Literal["escalation", "approval", "question", "run", "todo"]
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class BoardFilter:
    """Which todos a board shows. `search` matches a part of the title or the description."""

    pillar: str | None = None
    priority: TodoPriority | None = None
    search: str = ""
    archived: bool = False
    label: str | None = None

    def matches(self, todo: MissionTodo, pillar_id: str | None) -> bool:
        """For open todos; the database selects the ended ones."""
        text = self.search.lower()
        return (
            (pillar_id is None or todo.pillar_id == pillar_id)
            and (self.priority is None or todo.priority is self.priority)
            and (self.label is None or self.label in todo.label_names)
            and (not text or text in todo.title.lower() or text in todo.description.lower())
        )


@dataclass(frozen=True, slots=True)
class MissionBoard:
    mission: Mission
    pillars: Sequence[PillarState]
    metrics: Sequence[MetricView]
    todos: TodoPage
    """One page of the cards: in progress, pending, backlog, then ended ones, newest first."""
    counts: Mapping[TodoStatus, int]
    """How many todos each column has, on all pages."""
    cadence: Cadence
    next_cycle: str | None
    now: datetime
    runs: Mapping[str, Run]
    """The newest run of each todo in progress."""
    waits: Mapping[str, Sequence[CardWait]] = field(default_factory=dict)
    """What the todos wait for, by todo id."""
    labels: Sequence[str] = ()
    """Of all open todos, whatever the filter, and of the others on this page."""


def read_board(
    store: Store,
    slug: str,
    filter: BoardFilter = BoardFilter(),
    *,
    limit: int = MAX_LIMIT,
    cursor: str | None = None,
) -> MissionBoard:
    """One page of a board."""
    if len(filter.search) > MAX_SEARCH_LENGTH:
        raise InvalidInput(f"search: at most {MAX_SEARCH_LENGTH} characters")
    after = pagination.parse_cursor(cursor) if cursor is not None else None
    missions = Missions(store, Conversations(store))
    mission = missions.get(slug)
    cadence, now = cadence_of(mission), store.clock()
    with store.read() as tx:
        todos, counts, labels = _read_cards(tx, find_mission(tx, slug), filter, after, limit)
        runs = dict[str, Run]()
        for run in view_repository.newest_runs_first(tx, mission.id):
            runs.setdefault(str(run.todo_id), run)
        waits = _waits(tx, mission, runs, todos)
    return MissionBoard(
        mission,
        missions.pillars(mission),
        Metrics(store).views(slug),
        todos,
        counts,
        cadence,
        next_cycle(mission, now),
        now,
        runs,
        waits,
        labels,
    )


def _read_cards(
    tx: Transaction, mission: Mission, filter: BoardFilter, after: pagination.SortKey | EndedCursor | None, limit: int
) -> tuple[TodoPage, dict[TodoStatus, int], list[str]]:
    pillars = {pillar.id: pillar.slug for pillar in mission_repository.pillars_of(tx, mission.id)}
    pillar_id = _pillar_id(mission, pillars, filter.pillar)
    policy = policy_of(mission)
    oldest = timestamp(parse_timestamp(tx.now()) - timedelta(days=policy.archive_after_days))
    since = "0" if filter.archived else oldest
    open_todos = todo_repository.open_in_mission(tx, mission.id)
    cards = sorted((todo for todo in open_todos if filter.matches(todo, pillar_id)), key=pagination.sort_key)
    counts = dict.fromkeys(TodoStatus, 0)
    for todo in cards:
        counts[todo.status] += 1
    label = todo_repository.label_pattern(filter.label)
    matching = {"pillar_id": pillar_id or "", "priority": filter.priority or "", "label": label}
    matching |= _patterns(filter.search)
    plain = not any(matching.values())
    ended = (
        view_repository.count_ended(tx, mission_id=mission.id, since=since)
        if plain
        else view_repository.count_ended_matches(tx, mission_id=mission.id, since=since, **matching)
    )
    shown_again = view_repository.count_unarchived(tx, mission_id=mission.id, since=since, **matching)
    for status, count in (*ended, *shown_again):
        if status not in OPEN:
            counts[TodoStatus(status)] += count
    items = [] if isinstance(after, EndedCursor) else cards
    if after is not None and not isinstance(after, EndedCursor):
        items = [todo for todo in cards if pagination.sort_key(todo) > after]
    if len(items) <= limit:
        place = after if isinstance(after, EndedCursor) else NEWEST
        page = {"mission_id": mission.id, "since": since, "at": place.at, "id": place.id}
        # A search is not repeated over all todos to find more than there are.
        if most := min(limit + 1 - len(items), sum(count for _, count in ended)):
            items = items + view_repository.ended_todos(tx, **page, **matching, most=most)
        if len(items) <= limit and shown_again:
            # All of these ended before those above.
            items += view_repository.unarchived_todos(tx, **page, **matching, most=limit + 1 - len(items))
    used = sum(1 for todo in open_todos if todo.status in ACTIVE)
    capacity = Capacity(used, policy.active_todo_limit, len(open_todos) - used, policy.backlog_todo_limit)
    more = pagination.cursor_after(items[limit - 1]) if len(items) > limit else None
    escalated = frozenset(escalation_repository.escalated_todo_ids(tx, mission.id))
    cards_page = TodoPage(
        items[:limit], capacity, more, escalated, pillars, sub_items(tx, mission), blocked_by(tx, mission)
    )
    labels = {name for todo in (*open_todos, *items) for name in todo.label_names}
    return cards_page, counts, sorted(labels)


def _pillar_id(mission: Mission, pillars: Mapping[str, str], slug: str | None) -> str | None:
    """Archived pillars count."""
    if slug is None:
        return None
    found = next((id for id, known in pillars.items() if known == slug), None)
    if found is None:
        hint = did_you_mean(slug, list(pillars.values()))
        raise NotFound(f"Mission {mission.slug!r} has no pillar {excerpt(slug)!r}.{hint}")
    return found


def _patterns(search: str) -> dict[str, str]:
    escaped = search.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    pattern = f"%{escaped}%" if search else ""
    return {"search": pattern, "lowered": "" if search.isascii() else pattern.lower()}


def _waits(tx: Transaction, mission: Mission, runs: Mapping[str, Run], page: TodoPage) -> dict[str, list[CardWait]]:
    waits: dict[str, list[CardWait]] = {}
    titles = {todo.id: todo.title for todo in page.items}
    for todo in page.items:
        if todo.status in (TodoStatus.BACKLOG, TodoStatus.PENDING):
            for blocker in page.blocked_by.get(todo.id, ()):
                title = titles.get(blocker) or view_repository.title_of(tx, blocker) or blocker
                waits.setdefault(todo.id, []).append(CardWait("todo", blocker, f"blocked by “{title}”"))
        # Those of the page only: a mission can have thousands.
        for escalation in view_repository.unanswered_of_todo(tx, todo.id) if todo.id in page.escalated else ():
            waits.setdefault(todo.id, []).append(CardWait("escalation", escalation.id, escalation.question))
    for request in view_repository.agent_requests(tx, mission_id=mission.id, todo_id="", most=MAX_REQUESTS):
        if request.todo_id is not None:
            waits.setdefault(request.todo_id, []).append(CardWait(request.kind, request.id, request.text))
    for todo_id, run in runs.items():
        if run.status in _RESTING:
            waits.setdefault(todo_id, []).append(CardWait("run", run.id, run.why or run.status.value))
    return waits


def board_json(board: MissionBoard) -> dict[str, Any]:
    todos = list_json(board.todos)
    cards = [{**todo, **_card_json(board, todo["id"])} for todo in todos["items"]]
    return {
        "nextCycle": board.next_cycle,
        "columns": [{"status": status.value, "count": count} for status, count in board.counts.items()],
        "pillars": [
            {
                **camel_json(pillar, *_PILLAR_FIELDS),
                "strategies": [camel_json(each, "id", "description", "status") for each in strategies],
                "metrics": [view.as_json() for view in board.metrics if view.pillar_slug == pillar.slug],
                "todos": [todo for todo in cards if todo["pillarId"] == pillar.id],
            }
            for pillar, strategies in ((state.pillar, state.strategies) for state in board.pillars)
        ],
        **({"nextCursor": todos["nextCursor"]} if "nextCursor" in todos else {}),
    }


def _card_json(board: MissionBoard, todo_id: str) -> dict[str, Any]:
    def parts() -> Iterator[tuple[str, Any]]:
        if run := board.runs.get(todo_id):
            yield "run", {"id": run.id, "status": run.status.value, "agent": run.agent, "why": run.why}
        if waits := board.waits.get(todo_id):
            yield "waits", [wait._asdict() for wait in waits]

    return dict(parts())
