"""What each todo waits for, worked out from the todos, their conditions and the time. Pure.

An answer and an event are stored with their condition. Whether a time has come, another todo has
ended or a resource is free is seen by looking, so nothing has to be told when it changes.

Nothing can wait forever for something that waits for it. In a circle of todos the one that is first
in the plan does not wait for the others of the circle (C12). A resource belongs to the todo in
progress that claims it, else to the first claimant that waits for nothing else: a todo that waits
for a person keeps nobody from the file that it will need later. What has ended holds nothing up,
cancelled or completed: the work it stood for is not going to be done, and the planner is told so
with what waited for it (`notes`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import visible
from punchlist.plan.lifecycle import OPEN, RESOLVABLE, ConditionKind, ConditionStatus, PlanStatus
from punchlist.plan.model import Condition, ConditionAnswer, TurnTodo

HAPPENED: Final = "It has happened."
MAX_CYCLE_WORK: Final = 100_000
"""Waits that are looked at to take circles apart one by one; what is left of them past that holds nobody up."""


class ResourceConflict(NamedTuple):
    """A resource that several open todos claim, in the plan's order."""

    resource: str
    claimants: list[str]
    holder: str | None


def waiting_reasons(todos: Sequence[TurnTodo], conditions: Iterable[Condition], now: str) -> dict[str, list[str]]:
    """By id, what each pending todo waits for, in words. `todos` are all of the turn, in their order."""
    conditions = list(conditions)
    known = {todo.id: todo for todo in todos}
    words = _needs(known, conditions, now)
    for claim in resource_conflicts(todos, conditions, frozenset(words)):
        if claim.holder is None:
            continue
        other = f"{quoted_title(known[claim.holder])}, which claims {visible(claim.resource)} too"
        for todo_id in claim.claimants:
            if todo_id != claim.holder and known[todo_id].status is PlanStatus.PENDING:
                words.setdefault(todo_id, []).append(other)
    return words


def _needs(known: Mapping[str, TurnTodo], conditions: Sequence[Condition], now: str) -> dict[str, list[str]]:
    """As `waits`, without what is claimed."""
    edges = dependencies(known.values(), conditions)
    _, freed = break_cycles(edges, list(known))
    words: dict[str, list[str]] = {}
    for condition in conditions:
        todo = known.get(condition.todo_id)
        if todo is None or todo.status is not PlanStatus.PENDING:
            continue
        word = None
        if condition.kind is ConditionKind.TODO:
            if condition.subject in edges.get(todo.id, ()) and (todo.id, condition.subject) not in freed:
                word = title_with_id(known[condition.subject])
        elif condition.kind is not ConditionKind.RESOURCE and not _come(condition, now):
            word = describe_condition(condition)
        if word and word not in words.setdefault(todo.id, []):
            words[todo.id].append(word)
    return {todo_id: found for todo_id, found in words.items() if found}


def _come(condition: Condition, now: str) -> bool:
    """Whether the answer was given, the event has happened, the time has come."""
    if condition.kind is ConditionKind.TIME:
        return parse_timestamp(condition.subject) <= parse_timestamp(now)
    return condition.status is ConditionStatus.RESOLVED


def describe_condition(condition: Condition) -> str:
    """In words, what a condition on a person, an event or a time waits for."""
    match condition.kind:
        case ConditionKind.PERSON:
            return f"an answer to “{visible(condition.subject)}”"
        case ConditionKind.EVENT:
            return f"the event “{visible(condition.subject)}”"
    return visible(condition.subject)


def is_unmet(condition: Condition, now: str) -> bool:
    """Whether it waits for somebody to say something, or for a time that has not come."""
    return condition.kind in (*RESOLVABLE, ConditionKind.TIME) and not _come(condition, now)


def quoted_title(todo: TurnTodo) -> str:
    return f"“{visible(todo.title)}”"


def title_with_id(todo: TurnTodo) -> str:
    return f"{quoted_title(todo)} (id {todo.id})"


def dependencies(todos: Iterable[TurnTodo], conditions: Iterable[Condition]) -> dict[str, list[str]]:
    """For each pending todo with some, the open todos that it is to come after."""
    status = {todo.id: todo.status for todo in todos}
    edges: dict[str, list[str]] = {}
    for condition in conditions:
        if (
            condition.kind is ConditionKind.TODO
            and status.get(condition.todo_id) is PlanStatus.PENDING
            and status.get(condition.subject) in OPEN
        ):
            edges.setdefault(condition.todo_id, []).append(condition.subject)
    return edges


def break_cycles(
    edges: Mapping[str, Collection[str]], order: Sequence[str]
) -> tuple[list[list[str]], set[tuple[str, str]]]:
    """The circles in what waits for what, and the pairs (who, for whom) that therefore hold nobody up.

    Taken in the plan's order: whoever is first in a circle is freed from the others of it and with that
    stands in no circle any more; what is left is looked at again without it.
    """
    left = _trimmed({source: set(targets) for source, targets in edges.items()})
    found: list[list[str]] = []
    freed: set[tuple[str, str]] = set()
    work = 0
    for first in order:
        if not left:
            break
        if first not in left:
            continue
        work += sum(map(len, left.values()))
        if work > MAX_CYCLE_WORK:
            freed |= {(source, target) for source, targets in left.items() for target in targets}
            break
        circle = _reached(first, left) & _reached(first, _turned(left))
        if circle:
            found.append([todo_id for todo_id in order if todo_id in circle])
            freed |= {(first, other) for other in circle}
        del left[first]
        left = _trimmed(left)
    return found, freed


def _trimmed(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without what cannot be in a circle: it waits for nothing that is left, or nothing left waits for it."""
    return _turned(_without_ends(_turned(_without_ends(edges))))


def _without_ends(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    waiting_for = _turned(edges)
    ends = [target for target in waiting_for if not edges.get(target)]
    while ends:
        end = ends.pop()
        for source in waiting_for.get(end, ()):
            edges[source].discard(end)
            if not edges[source]:
                del edges[source]
                ends.append(source)
    return edges


def _turned(edges: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    turned: dict[str, set[str]] = {}
    for source, targets in edges.items():
        for target in targets:
            turned.setdefault(target, set()).add(source)
    return turned


def _reached(start: str, edges: Mapping[str, Collection[str]]) -> set[str]:
    """What can be come to from `start`; itself only if there is a way back."""
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        for target in edges.get(ahead.pop(), ()):
            if target not in reached:
                reached.add(target)
                ahead.append(target)
    return reached


def resource_conflicts(
    todos: Sequence[TurnTodo], conditions: Iterable[Condition], waiting: Collection[str]
) -> list[ResourceConflict]:
    """What more than one open todo claims. `waiting` are the ids of those that wait for something else."""
    open_ones = {todo.id: (place, todo.status) for place, todo in enumerate(todos) if todo.status in OPEN}
    claimed: dict[str, set[str]] = {}
    for condition in conditions:
        if condition.kind is ConditionKind.RESOURCE and condition.todo_id in open_ones:
            claimed.setdefault(condition.subject, set()).add(condition.todo_id)
    found = []
    for resource, ids in claimed.items():
        if len(ids) > 1:
            claimants = sorted(ids, key=open_ones.__getitem__)
            running = [todo_id for todo_id in claimants if open_ones[todo_id][1] is PlanStatus.IN_PROGRESS]
            ready = [todo_id for todo_id in claimants if todo_id not in waiting]
            found.append(ResourceConflict(resource, claimants, next(iter(running + ready), None)))
    return found


def collect_answers(conditions: Iterable[Condition]) -> dict[str, list[ConditionAnswer]]:
    """By todo, what was answered so far."""
    found: dict[str, list[ConditionAnswer]] = {}
    for condition in conditions:
        if condition.kind in RESOLVABLE and condition.status is ConditionStatus.RESOLVED:
            told = ConditionAnswer(condition.kind, condition.subject, condition.answer or HAPPENED)
            found.setdefault(condition.todo_id, []).append(told)
    return found


def cancellation_notes(todos: Sequence[TurnTodo], conditions: Iterable[Condition]) -> dict[str, list[str]]:
    """By id, what is to be known of those that an open todo waited for: which of them were cancelled, and why."""
    known = {todo.id: todo for todo in todos}
    found: dict[str, list[str]] = {}
    for condition in conditions:
        todo = known.get(condition.todo_id)
        other = known.get(condition.subject) if condition.kind is ConditionKind.TODO else None
        if todo is not None and todo.status in OPEN and other is not None and other.status is PlanStatus.CANCELLED:
            told = f"{title_with_id(other)}, which this waited for, was cancelled: {visible(other.outcome)}"
            found.setdefault(todo.id, []).append(told)
    return found
