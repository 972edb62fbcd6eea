"""`/missions/SLUG/board`: five columns of cards, filters in the address, and a todo in a drawer beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from punchlist.errors import InvalidInput
from punchlist.missions.model import MissionTodo
from punchlist.missions.todos import deadlines
from punchlist.missions.todos.lifecycle import OPEN, TodoPriority, TodoStatus
from punchlist.missions.todos.pagination import MAX_LIMIT
from punchlist.runs.lifecycle import RunStatus
from punchlist.surfaces.web.pages import todo as todo_page
from punchlist.surfaces.web.pages.formats import deadline_state
from punchlist.surfaces.web.pages.moves import moves_json
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.views.board import BoardFilter, CardWait, MissionBoard, read_board

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMPACT_ABOVE: Final = 100
"""With more todos, cards are compact and a column shows its first ten."""
SHORT_COLUMN: Final = 10
MORE: Final = 50
"""How many more cards each "show more" adds."""

_WORK: Final = {
    RunStatus.QUEUED: ("queued", ""),
    RunStatus.DISPATCHED: ("starting", "working"),
    RunStatus.RUNNING: ("working", "working"),
    RunStatus.WAITING: ("waiting", "needs-you"),
    RunStatus.PAUSED: ("paused", "warn"),
    RunStatus.FAILED: ("failed", "failed"),
    RunStatus.STOPPED: ("stopped", "warn"),
    # The todo is still in progress: its result is not accepted.
    RunStatus.DONE: ("to accept", "needs-you"),
}


@dataclass(frozen=True, slots=True)
class Card:
    todo: MissionTodo
    pillar: str
    url: str
    deadline: str
    work: tuple[str, str] | None
    """In what state the work on it is, in a word, and its colour."""
    waits: Sequence[CardWait]
    selected: bool
    can_move: bool
    compact: bool
    labels: Sequence[str] = ()
    subs: tuple[int, int] | None = None
    """How many of its sub-items are done, and how many there are."""

    @property
    def bare(self) -> bool:
        """Ended todos are titles."""
        return self.todo.status not in OPEN


@dataclass(frozen=True, slots=True)
class Column:
    status: str
    count: int
    cards: Sequence[Card]
    ended: bool
    more: str | None


def board(request: PageRequest) -> Page:
    slug, opened = request.parameters["mission"], request.get("todo")
    filter = _filter(request)
    found = read_board(request.services.store, slug, filter, limit=MAX_LIMIT, cursor=request.get("cursor") or None)
    total = sum(found.counts.values())
    capacity = found.todos.capacity
    values: dict[str, Any] = {
        "board": found,
        "filter": filter,
        "filtered": filter != BoardFilter(archived=filter.archived),
        "priorities": [priority.value for priority in TodoPriority],
        "labels": sorted({*found.labels, *([filter.label] if filter.label else [])}),
        "chosen_label": filter.label or "",
        "capacity": capacity,
        "compact": total > COMPACT_ABOVE,
        "total": total,
        "columns": _columns(request, found, total),
        "moves": moves_json(capacity, request.actor.role) if found.mission.status == "active" else {},
        "path": request.path,
        "next_page": request.link(cursor=found.todos.cursor) if found.todos.cursor else None,
        "close_url": request.link(todo=None),
        "detail": todo_page.read(request, opened) if opened else None,
    }
    return Page("board.html", found.mission.name, values, section=f"mission:{slug}", mission=slug)


def _filter(request: PageRequest) -> BoardFilter:
    priority = request.get("priority")
    if priority and priority not in list(TodoPriority):
        raise InvalidInput(f"priority: must be one of {', '.join(TodoPriority)}")
    return BoardFilter(
        request.get("pillar") or None,
        TodoPriority(priority) if priority else None,
        request.get("search"),
        archived=request.get("archived") == "1",
        label=request.get("label") or None,
    )


def _columns(request: PageRequest, board: MissionBoard, total: int) -> list[Column]:
    compact = total > COMPACT_ABOVE
    by_status: dict[TodoStatus, list[MissionTodo]] = {status: [] for status in TodoStatus}
    for todo in board.todos.items:
        by_status[todo.status].append(todo)
    pillars = {state.pillar.id: state.pillar.name for state in board.pillars}
    columns = []
    for status, todos in by_status.items():
        ended = status not in OPEN
        shown = _shown(request, status, SHORT_COLUMN if compact or ended else COMPACT_ABOVE)
        cards = [_card(request, board, todo, pillars, compact) for todo in todos[:shown]]
        more = request.link(**{f"show-{status.value}": str(shown + MORE)}) if len(todos) > shown else None
        columns.append(Column(status.value, board.counts[status], cards, ended, more))
    return columns


def _told(wait: CardWait) -> CardWait:
    """The first line of an escalation repeats the title of the card."""
    lines = wait.text.splitlines()
    return wait._replace(text=lines[1]) if wait.kind == "escalation" and len(lines) > 1 else wait


def _shown(request: PageRequest, status: TodoStatus, default: int) -> int:
    given = request.get(f"show-{status.value}")
    return min(int(given), MAX_LIMIT) if given.isdecimal() and len(given) < 5 else default


def _card(
    request: PageRequest, board: MissionBoard, todo: MissionTodo, pillars: Mapping[str, str], compact: bool
) -> Card:
    is_open = todo.status in OPEN
    due = deadlines.due_at(todo.deadline, board.cadence.timezone) if todo.deadline and is_open else None
    return Card(
        todo,
        pillars.get(todo.pillar_id, ""),
        request.link(todo=todo.id),
        deadline_state(todo.deadline, due is not None and due <= board.now, due, board.now) if is_open else "",
        _WORK[board.runs[todo.id].status] if todo.id in board.runs and is_open else None,
        [_told(wait) for wait in board.waits.get(todo.id, ())],
        request.get("todo") == todo.id,
        is_open and board.mission.status == "active",
        compact,
        todo.label_names,
        (subs.completed + subs.cancelled, subs.total) if (subs := board.todos.sub_items.get(todo.id)) else None,
    )
