"""Values of the plan."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

from punchlist.claims.model import Claim
from punchlist.errors import StoreDamaged
from punchlist.kernel.clock import parse_timestamp
from punchlist.plan.lifecycle import ConditionKind, ConditionStatus, PlanStatus


@dataclass(frozen=True, slots=True)
class NewCondition:
    """What must be so first, as the planner says it: another todo by its id or its title."""

    kind: ConditionKind
    subject: str


@dataclass(frozen=True, slots=True)
class NewTodo:
    """What the planner says of an item; `order` is a position counted from 1."""

    title: str
    context: str = ""
    completion_criteria: str = ""
    agent_type: str | None = None
    order: int | None = None
    blocked_by: tuple[NewCondition, ...] = ()
    resources: tuple[str, ...] = ()


class TurnTodo(NamedTuple):
    """A row of `turn_todos`. A named tuple, since lists are made of many and made often."""

    id: str
    conversation_id: str
    turn_id: str
    title: str
    context: str
    completion_criteria: str
    agent_type: str | None
    status: PlanStatus
    priority: int
    outcome: str | None
    created_at: str
    started_at: str | None
    completed_at: str | None

    def checksum(self) -> int:
        return _checksum(*self)

    def creation_data(self) -> dict[str, Any]:
        """What the planner said of it, without what it left open."""
        told = {
            "title": self.title,
            "context": self.context,
            "completion_criteria": self.completion_criteria,
            "agent_type": self.agent_type,
        }
        return {"priority": self.priority, **{key: value for key, value in told.items() if value}}


_STATUS = {status.value: status for status in PlanStatus}


def todo_from_row(row: tuple[Any, ...]) -> TurnTodo:
    """A row as it was read, after its checksum was found right."""
    try:
        # One by one: lists are read often, and slices of tuples take longer than all the rest.
        id, whose, turn, title, context, criteria, agent, status, order, outcome, made, begun, done, checksum = row
        sound = _checksum(id, whose, turn, title, context, criteria, agent, status, order, outcome, made, begun, done)
        if sound == checksum:
            status = _STATUS.get(status, status)
            return TurnTodo(id, whose, turn, title, context, criteria, agent, status, order, outcome, made, begun, done)
    except TypeError:
        # Something that is no text where text was written.
        pass
    raise StoreDamaged.not_as_written(f"Todo {row[0]!r} of the plan")


def _checksum(
    id: str,
    conversation_id: str,
    turn_id: str,
    title: str,
    context: str,
    completion_criteria: str,
    agent_type: str | None,
    status: str,
    _priority: int,
    outcome: str | None,
    created_at: str,
    started_at: str | None,
    completed_at: str | None,
) -> int:
    """Of all but the priority, which shifts when another item is put before this one."""
    parts = (
        id,
        conversation_id,
        turn_id,
        title,
        context,
        completion_criteria,
        agent_type or "",
        status,
        outcome or "",
        created_at,
        started_at or "",
        completed_at or "",
    )
    return zlib.crc32("\x1f".join(parts).encode())


def parse_todo_row(row: tuple[Any, ...]) -> TurnTodo | str:
    """A row as a todo or, where it is none, what is wrong with it (C11)."""
    try:
        todo = todo_from_row(row)
        if row[7] not in _STATUS:
            return f"Todo {row[0]!r} has the status {row[7]!r}, which a todo cannot have; it is left out."
        if not todo.title.strip():
            return f"Todo {row[0]!r} has no title; it is left out."
    except StoreDamaged as damage:
        return f"{damage} It is left out."
    return todo


class Condition(NamedTuple):
    """A row of `todo_conditions`: what must be so before a todo can be worked on."""

    id: str
    conversation_id: str
    turn_id: str
    todo_id: str
    kind: ConditionKind
    # What a person is asked, when it is time, the event's name, the other todo's id, what is claimed.
    subject: str
    status: ConditionStatus
    answer: str | None
    resolved_by: str | None
    resolved_at: str | None
    created_at: str

    def event_data(self) -> dict[str, str]:
        """What the trail keeps of it, besides what the event itself says."""
        return {"id": self.id, "kind": self.kind.value, "subject": self.subject}


def parse_condition_row(row: tuple[Any, ...]) -> Condition | str:
    """A row as a condition or, where it is none, what is wrong with it (C11)."""
    try:
        read = Condition._make((*row[:4], ConditionKind(row[4]), row[5], ConditionStatus(row[6]), *row[7:]))
        if read.kind is not ConditionKind.TIME or parse_timestamp(read.subject).tzinfo is not None:
            return read
    except (ValueError, TypeError):
        pass
    return f"{StoreDamaged.not_as_written(f'Condition {row[0]!r} of todo {row[3]!r}')} It is left out."


class ConditionAnswer(NamedTuple):
    """What a person said, or what is known of an event that has happened."""

    kind: ConditionKind
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class BlockedTodo:
    """A condition, and the todo that it holds up."""

    condition: Condition
    todo: TurnTodo


class PlanSummary(TypedDict):
    total: int
    pending: int
    inProgress: int
    completed: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A turn's todos, those asked for, and the counts of all; by id, what they wait for and what was answered."""

    items: list[TurnTodo]
    counts: dict[PlanStatus, int]
    waits: Mapping[str, list[str]] = field(default_factory=dict)
    answers: Mapping[str, list[ConditionAnswer]] = field(default_factory=dict)
    notes: Mapping[str, list[str]] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    """By id, what somebody holds."""

    @property
    def remaining(self) -> int:
        return self.counts[PlanStatus.PENDING] + self.counts[PlanStatus.IN_PROGRESS]

    @property
    def summary(self) -> PlanSummary:
        return {
            "total": sum(self.counts.values()),
            "pending": self.counts[PlanStatus.PENDING],
            "inProgress": self.counts[PlanStatus.IN_PROGRESS],
            "completed": self.counts[PlanStatus.COMPLETED],
            "cancelled": self.counts[PlanStatus.CANCELLED],
        }


@dataclass(frozen=True, slots=True)
class PlanSnapshot:
    """All of a turn's todos in their order, as far as they can be read; by id, waits and answers."""

    todos: list[TurnTodo]
    waits: Mapping[str, list[str]] = field(default_factory=dict)
    answers: Mapping[str, list[ConditionAnswer]] = field(default_factory=dict)
    notes: Mapping[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CreatedTodos:
    """The todos of one batch, how many are pending in all, and what about them is in conflict (C12)."""

    todos: list[TurnTodo]
    total_pending: int
    conflicts: list[str]


@dataclass(frozen=True, slots=True)
class EndedTodo:
    """A todo that was completed or cancelled, and how many remain."""

    todo: TurnTodo
    remaining: int


@dataclass(frozen=True, slots=True)
class WaitingTodo:
    """A todo that was told to wait, and for what it does now."""

    todo: TurnTodo
    waits_for: list[str]
    conflicts: list[str]


@dataclass(frozen=True, slots=True)
class FailedTodo:
    """A todo whose work failed: to be tried once more, or skipped."""

    todo: TurnTodo
    retry: bool
    remaining: int
