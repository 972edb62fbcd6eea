"""A script of changes whose outcome is known beforehand.

`perform(n)` makes the n-th change through the services; `expected(n)` says, without any store, what
the lists are after the first n of them. Every change makes a difference, so a store that holds
`expected(n)` exactly holds the first n changes, all of each and nothing else.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.app import Services
from punchlist.audit.check import check
from punchlist.config import Settings
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.plan import validation as plan_validation
from punchlist.plan.lifecycle import PlanAction, PlanStatus
from punchlist.storage.open import read_schema_version

CHANGES_PER_ROUND: Final = 6
TODOS_PER_ROUND: Final = 3
ROUNDS_PER_TURN: Final = 50


class Todo(NamedTuple):
    title: str
    status: str
    outcome: str | None


class Task(NamedTuple):
    content: str
    active_form: str
    status: str


class Lists(NamedTuple):
    """What a session holds: its turns that have a plan, oldest first, and its checklist."""

    turns: tuple[tuple[tuple[Todo, ...], str | None], ...]
    checklist: tuple[Task, ...]


def expected(changes: int) -> Lists:
    rounds = -(-changes // CHANGES_PER_ROUND)
    turns = []
    for first in range(0, rounds, ROUNDS_PER_TURN):
        here = range(first, min(first + ROUNDS_PER_TURN, rounds))
        todos = {n: _todos(n, changes - n * CHANGES_PER_ROUND) for n in here}
        # The third todo of every round was put before all others.
        line = [todos[n][2] for n in reversed(here)] + [todo for n in here for todo in todos[n][:2]]
        ended = changes >= (first + ROUNDS_PER_TURN) * CHANGES_PER_ROUND
        turns.append((tuple(line), "script" if ended else None))
    rewritten = max((n for n in range(changes - CHANGES_PER_ROUND * 2, changes) if _rewrites(n)), default=None)
    return Lists(tuple(turns), () if rewritten is None else _tasks(rewritten))


def position(lists: Lists) -> int | None:
    """After how many changes the lists look like this; None when they never do."""
    todos = sum(len(line) for line, _ in lists.turns)
    if todos % TODOS_PER_ROUND:
        return None
    last = todos // TODOS_PER_ROUND * CHANGES_PER_ROUND
    return next((n for n in range(max(0, last - CHANGES_PER_ROUND), last + 1) if expected(n) == lists), None)


def _todos(number: int, changes: int) -> tuple[Todo, Todo, Todo]:
    """The todos of one round after so many of its own changes."""
    first = Todo(_title(number, 0), PlanStatus.PENDING, None)
    second = Todo(_title(number, 1), PlanStatus.PENDING, None)
    if changes > 1:
        first = first._replace(status=PlanStatus.IN_PROGRESS)
    if changes > 3:
        first = first._replace(status=PlanStatus.COMPLETED, outcome=_outcome(number))
    if changes > 4:
        second = second._replace(status=PlanStatus.CANCELLED, outcome=_outcome(number))
    return first, second, Todo(_title(number, 2), PlanStatus.PENDING, None)


def _title(number: int, which: int) -> str:
    return f"Todo {number}.{which}: größer — 速い 🚀"


def _outcome(number: int) -> str:
    return f"what came of {number}"


def _ends_turn(change: int) -> bool:
    number, step = divmod(change, CHANGES_PER_ROUND)
    return step == 5 and number % ROUNDS_PER_TURN == ROUNDS_PER_TURN - 1


def _rewrites(change: int) -> bool:
    step = change % CHANGES_PER_ROUND
    return change >= 0 and (step == 2 or (step == 5 and not _ends_turn(change)))


def _tasks(change: int) -> tuple[Task, ...]:
    """The checklist of a rewrite: tasks of its own, then the unfinished ones of the rewrite before, which it ends."""
    before = next((n for n in range(change - 1, max(-1, change - CHANGES_PER_ROUND * 2), -1) if _rewrites(n)), None)
    ended = () if before is None else _own_tasks(before)[1:]
    return (*_own_tasks(change), *(task._replace(status="completed") for task in ended))


def _own_tasks(change: int) -> tuple[Task, ...]:
    states = ["completed", "in_progress", "pending", "pending"]
    return tuple(Task(f"Task {change}/{i} ü", f"Doing {change}/{i} …", status) for i, status in enumerate(states))


class Script:
    """The script over one session of one database."""

    def __init__(self, address: str, session: str = "s") -> None:
        self.house = Services(Settings(address, session, "normal", None))
        self.scope = Scope(session, Actor(Role.SUPERVISOR, "script"))

    def perform(self, change: int) -> None:
        number, step = divmod(change, CHANGES_PER_ROUND)
        if _rewrites(change):
            todos = [{"content": t.content, "activeForm": t.active_form, "status": t.status} for t in _tasks(change)]
            self.house.checklists.rewrite(self.scope, todos)
            return
        if _ends_turn(change):
            self.house.conversations.end_turn(self.scope, reason="script")
            return
        opened = self.house.conversations.open_turn(self.scope)
        turn = TurnScope(self.scope.conversation_id, self.scope.actor, opened.id)
        if step == 0:
            items = [{"title": _title(number, which), "context": "some context\nin lines"} for which in range(3)]
            self.house.plans.create(turn, plan_validation.parse_items([*items[:2], {**items[2], "order": 1}]))
            return
        ids = {todo.title: todo.id for todo in self.house.plans.list(turn).items}
        if step == 1:
            self.house.plans.start(turn, ids[_title(number, 0)])
        elif step == 3:
            self.house.plans.end(turn, ids[_title(number, 0)], _outcome(number))
        else:
            self.house.plans.end(turn, ids[_title(number, 1)], _outcome(number), PlanAction.CANCEL)

    def perform_all(self, changes: int) -> None:
        for change in range(changes):
            self.perform(change)

    def lists(self) -> Lists:
        """What the services say the session holds."""
        session = self.scope.conversation_id
        turns = []
        for turn in reversed(self.house.conversations.turns(session, limit=1_000_000)):
            plan = self.house.plans.list(TurnScope(session, self.scope.actor, turn.id), frozenset(PlanStatus))
            if plan.items:
                turns.append((tuple(Todo(t.title, t.status, t.outcome) for t in plan.items), turn.end_reason))
        checklist = self.house.checklists.get(session)
        return Lists(tuple(turns), tuple(Task(i.content, i.active_form, i.status) for i in checklist.items))

    def problems(self) -> list[str]:
        """What `punchlist db check` finds wrong."""
        store = self.house.store
        return check(store, read_schema_version(store) or "none").problems

    def close(self) -> None:
        self.house.store.close()
