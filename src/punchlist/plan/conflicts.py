"""What about a plan is in conflict, and how it is decided, in sentences for the planner (C12). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from punchlist.kernel.text import visible
from punchlist.plan.condition_input import normalized_title
from punchlist.plan.conditions import (
    break_cycles,
    dependencies,
    quoted_title,
    resource_conflicts,
    title_with_id,
    waiting_reasons,
)
from punchlist.plan.lifecycle import OPEN, ConditionKind, PlanStatus
from punchlist.plan.model import Condition, TurnTodo

MAX_CONFLICTS: Final = 20
"""Conflicts that one answer explains."""


def duplicate_titles(known: Iterable[Sequence[Any]], new: Sequence[TurnTodo]) -> list[str]:
    """New todos that have the title of another that is open. `known` are id, status and title of those before."""
    groups: dict[str, list[str]] = {}
    for todo in new:
        groups.setdefault(normalized_title(todo.title), []).append(todo.id)
    for todo_id, status, name in known:
        group = groups.get(normalized_title(name))
        if group is not None and status in OPEN:
            group.insert(0, todo_id)
    if all(len(ids) == 1 for ids in groups.values()):
        return []
    told = []
    for todo in new:
        ids = groups.pop(normalized_title(todo.title), ())
        if len(ids) > 1:
            others = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
            told.append(
                f"{len(ids)} open todos are called {quoted_title(todo)}: ids {', '.join(ids[:5])}{others}. All stay; "
                "cancel those that are the same work."
            )
    return told


def explain_conflicts(
    todos: Sequence[TurnTodo], conditions: Sequence[Condition], about: Collection[str], now: str
) -> list[str]:
    """The circles, and the resources claimed twice, that the todos `about` have part in."""
    known = {todo.id: todo for todo in todos}
    circles, _ = break_cycles(dependencies(todos, conditions), list(known))
    told = [_circle(circle, known) for circle in circles if not set(about).isdisjoint(circle)]
    waiting = waiting_reasons(todos, [one for one in conditions if one.kind is not ConditionKind.RESOURCE], now)
    for claim in resource_conflicts(todos, conditions, waiting):
        if not set(about).isdisjoint(claim.claimants):
            told.append(_claim(claim.resource, claim.claimants, claim.holder, known))
    return told


def limit_conflicts(told: list[str]) -> list[str]:
    return (
        told
        if len(told) <= MAX_CONFLICTS
        else [*told[:MAX_CONFLICTS], f"… and {len(told) - MAX_CONFLICTS} more conflicts"]
    )


def _circle(circle: Sequence[str], known: Mapping[str, TurnTodo]) -> str:
    first = known[circle[0]]
    return (
        f"{_listed(circle, known)} wait for each other. {title_with_id(first)} comes first in the plan, so it goes "
        "first and does not wait for the others."
    )


def _claim(resource: str, claimants: Sequence[str], holder: str | None, known: Mapping[str, TurnTodo]) -> str:
    first = known[holder or claimants[0]]
    if first.status is PlanStatus.IN_PROGRESS:
        why = "is in progress"
    elif first.id == claimants[0]:
        why = "comes first in the plan"
    else:
        why = "waits for nothing else"
    rest = "the other waits" if len(claimants) == 2 else "the others wait"
    both = f"{_listed(claimants, known)} claim {visible(resource)}."
    return f"{both} {title_with_id(first)} {why}, so it goes first and {rest} for it."


def _listed(ids: Sequence[str], known: Mapping[str, TurnTodo]) -> str:
    shown = [quoted_title(known[todo_id]) for todo_id in ids[:5]]
    if len(ids) > 5:
        return f"{', '.join(shown)} and {len(ids) - 5} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
