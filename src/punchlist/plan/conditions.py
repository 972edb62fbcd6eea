"""What each todo waits for, and conflicts within a plan, computed from todos, conditions and the time. Pure.

Answers and events are stored with their condition. Times, other todos and resources are evaluated on
every read, so no update is needed when they change.

No todo can wait forever. In a dependency cycle the todo that is first in the plan does not wait for
the other members of the cycle (C12). A resource belongs to the todo in progress that claims it,
otherwise to the first claimant that waits for nothing else; a todo that waits for a person therefore
does not block others from a file that it needs later. An ended todo blocks nothing, whether it was
completed or cancelled; `cancellation_notes` reports the cancelled ones to the planner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import one_line, visible
from punchlist.plan.lifecycle import OPEN, RESOLVABLE, ConditionKind, ConditionStatus, PlanStatus
from punchlist.plan.model import Condition, ConditionAnswer, TurnTodo, numbered_title, quoted_title

TodoName = Callable[[TurnTodo], str]
HAPPENED: Final = "It has happened."
MAX_CYCLE_WORK: Final = 100_000
"""Edges examined to break cycles one by one; beyond that, all edges left in cycles are dropped."""


class ResourceConflict(NamedTuple):
    """A resource that several open todos claim, in plan order."""

    resource: str
    claimants: list[str]
    holder: str | None


def waiting_reasons(
    todos: Sequence[TurnTodo], conditions: Iterable[Condition], now: str, name: TodoName = numbered_title
) -> dict[str, list[str]]:
    """What each pending todo waits for, in words, by id. `todos` are all todos of the turn, in order."""
    conditions = list(conditions)
    by_id = {todo.id: todo for todo in todos}
    reasons = reasons_without_resources(by_id, conditions, now, name)
    for conflict in resource_conflicts(todos, conditions, frozenset(reasons)):
        if conflict.holder is None:
            continue
        reason = f"{quoted_title(by_id[conflict.holder])}, which claims {visible(conflict.resource)} too"
        for todo_id in conflict.claimants:
            if todo_id != conflict.holder and by_id[todo_id].status is PlanStatus.PENDING:
                reasons.setdefault(todo_id, []).append(reason)
    return reasons


def reasons_without_resources(
    by_id: Mapping[str, TurnTodo], conditions: Sequence[Condition], now: str, name: TodoName = numbered_title
) -> dict[str, list[str]]:
    """What each pending todo waits for, except resources that others use at the moment."""
    edges = dependencies(by_id.values(), conditions)
    _, dropped = break_cycles(edges, list(by_id))
    reasons: dict[str, list[str]] = {}
    for condition in conditions:
        todo = by_id.get(condition.todo_id)
        if todo is None or todo.status is not PlanStatus.PENDING:
            continue
        reason = None
        if condition.kind is ConditionKind.TODO:
            if condition.subject in edges.get(todo.id, ()) and (todo.id, condition.subject) not in dropped:
                reason = name(by_id[condition.subject])
        elif is_unmet(condition, now):
            reason = describe_condition(condition)
        if reason and reason not in reasons.setdefault(todo.id, []):
            reasons[todo.id].append(reason)
    return {todo_id: found for todo_id, found in reasons.items() if found}


def describe_condition(condition: Condition) -> str:
    match condition.kind:
        case ConditionKind.PERSON:
            return f"an answer to “{visible(condition.subject)}”"
        case ConditionKind.EVENT:
            return f"the event “{visible(condition.subject)}”"
    return visible(condition.subject)


def is_unmet(condition: Condition, now: str) -> bool:
    """Whether the condition still waits for a report or a time."""
    if condition.kind is ConditionKind.TIME:
        return parse_timestamp(condition.subject) > parse_timestamp(now)
    return condition.kind in RESOLVABLE and condition.status is not ConditionStatus.RESOLVED


def dependencies(todos: Iterable[TurnTodo], conditions: Iterable[Condition]) -> dict[str, list[str]]:
    """For each pending todo that has any, the open todos it waits for."""
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
    """The dependency cycles, and the edges (todo, dependency) to ignore so that none remains.

    Todos are taken in plan order. The first member of a cycle drops its edges to the other members and
    thereby leaves every cycle; the rest is searched again without it.
    """
    remaining = _trim({source: set(targets) for source, targets in edges.items()})
    cycles: list[list[str]] = []
    dropped: set[tuple[str, str]] = set()
    work = 0
    for first in order:
        if not remaining:
            break
        if first not in remaining:
            continue
        work += sum(map(len, remaining.values()))
        if work > MAX_CYCLE_WORK:
            dropped |= {(source, target) for source, targets in remaining.items() for target in targets}
            break
        cycle = _reachable(first, remaining) & _reachable(first, _reversed(remaining))
        if cycle:
            cycles.append([todo_id for todo_id in order if todo_id in cycle])
            dropped |= {(first, other) for other in cycle}
        del remaining[first]
        remaining = _trim(remaining)
    return cycles, dropped


def _trim(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Remove nodes without incoming or without outgoing edges, which cannot be part of a cycle."""
    return _reversed(_without_leaves(_reversed(_without_leaves(edges))))


def _without_leaves(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    sources = _reversed(edges)
    leaves = [target for target in sources if not edges.get(target)]
    while leaves:
        leaf = leaves.pop()
        for source in sources.get(leaf, ()):
            edges[source].discard(leaf)
            if not edges[source]:
                del edges[source]
                leaves.append(source)
    return edges


def _reversed(edges: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for source, targets in edges.items():
        for target in targets:
            result.setdefault(target, set()).add(source)
    return result


def _reachable(start: str, edges: Mapping[str, Collection[str]]) -> set[str]:
    """Nodes reachable from `start`; includes `start` only if it is on a cycle."""
    reached: set[str] = set()
    frontier = [start]
    while frontier:
        for target in edges.get(frontier.pop(), ()):
            if target not in reached:
                reached.add(target)
                frontier.append(target)
    return reached


def resource_conflicts(
    todos: Sequence[TurnTodo], conditions: Iterable[Condition], waiting: Collection[str]
) -> list[ResourceConflict]:
    """Resources that more than one open todo claims. `waiting` are ids of todos that wait for something else."""
    open_todos = {todo.id: (position, todo.status) for position, todo in enumerate(todos) if todo.status in OPEN}
    claimed: dict[str, set[str]] = {}
    for condition in conditions:
        if condition.kind is ConditionKind.RESOURCE and condition.todo_id in open_todos:
            claimed.setdefault(condition.subject, set()).add(condition.todo_id)
    conflicts = []
    for resource, ids in claimed.items():
        if len(ids) > 1:
            claimants = sorted(ids, key=open_todos.__getitem__)
            running = [todo_id for todo_id in claimants if open_todos[todo_id][1] is PlanStatus.IN_PROGRESS]
            ready = [todo_id for todo_id in claimants if todo_id not in waiting]
            conflicts.append(ResourceConflict(resource, claimants, next(iter(running + ready), None)))
    return conflicts


def collect_answers(conditions: Iterable[Condition]) -> dict[str, list[ConditionAnswer]]:
    """Answers given so far, by todo id."""
    found: dict[str, list[ConditionAnswer]] = {}
    for condition in conditions:
        if condition.kind in RESOLVABLE and condition.status is ConditionStatus.RESOLVED:
            answer = ConditionAnswer(condition.kind, condition.subject, condition.answer or HAPPENED)
            found.setdefault(condition.todo_id, []).append(answer)
    return found


def cancellation_notes(
    todos: Sequence[TurnTodo], conditions: Iterable[Condition], name: TodoName = numbered_title
) -> dict[str, list[str]]:
    """For each open todo, which of its dependencies were cancelled and why, by todo id."""
    by_id = {todo.id: todo for todo in todos}
    found: dict[str, list[str]] = {}
    for condition in conditions:
        todo = by_id.get(condition.todo_id)
        other = by_id.get(condition.subject) if condition.kind is ConditionKind.TODO else None
        if todo is not None and todo.status in OPEN and other is not None and other.status is PlanStatus.CANCELLED:
            note = f"{name(other)}, which this waited for, was cancelled: {one_line(other.outcome or '')}"
            found.setdefault(todo.id, []).append(note)
    return found


def explain_conflicts(
    todos: Sequence[TurnTodo], conditions: Sequence[Condition], about: Collection[str], now: str
) -> list[str]:
    """Messages about cycles and shared resources that involve any of the todos `about` (C12)."""
    by_id = {todo.id: todo for todo in todos}
    cycles, _ = break_cycles(dependencies(todos, conditions), list(by_id))
    messages = [_explain_cycle(cycle, by_id) for cycle in cycles if not set(about).isdisjoint(cycle)]
    waiting = reasons_without_resources(by_id, conditions, now)
    for conflict in resource_conflicts(todos, conditions, waiting):
        if not set(about).isdisjoint(conflict.claimants):
            messages.append(_explain_resource(conflict, by_id))
    return messages


def _explain_cycle(cycle: Sequence[str], by_id: Mapping[str, TurnTodo]) -> str:
    return (
        f"{_list_titles(cycle, by_id)} wait for each other. {numbered_title(by_id[cycle[0]])} comes first in the plan, "
        "so it goes first and does not wait for the others."
    )


def _explain_resource(conflict: ResourceConflict, by_id: Mapping[str, TurnTodo]) -> str:
    claimants = conflict.claimants
    first = by_id[conflict.holder or claimants[0]]
    if first.status is PlanStatus.IN_PROGRESS:
        why = "is in progress"
    elif first.id == claimants[0]:
        why = "comes first in the plan"
    else:
        why = "waits for nothing else"
    rest = "the other waits" if len(claimants) == 2 else "the others wait"
    return (
        f"{_list_titles(claimants, by_id)} claim {visible(conflict.resource)}. {numbered_title(first)} {why}, "
        f"so it goes first and {rest} for it."
    )


def _list_titles(ids: Sequence[str], by_id: Mapping[str, TurnTodo]) -> str:
    titles = [quoted_title(by_id[todo_id]) for todo_id in ids[:5]]
    if len(ids) > 5:
        return f"{', '.join(titles)} and {len(ids) - 5} more"
    return f"{', '.join(titles[:-1])} and {titles[-1]}"
