"""Values of the plan."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

from punchlist.errors import StoreDamaged
from punchlist.plan.lifecycle import Status


@dataclass(frozen=True, slots=True)
class NewTodo:
    """What the planner says of an item; `order` is a position counted from 1."""

    title: str
    context: str = ""
    completion_criteria: str = ""
    agent_type: str | None = None
    order: int | None = None


class TurnTodo(NamedTuple):
    """A row of `turn_todos`. A named tuple, since lists are made of many and made often."""

    id: str
    conversation_id: str
    turn_id: str
    title: str
    context: str
    completion_criteria: str
    agent_type: str | None
    status: Status
    priority: int
    outcome: str | None
    created_at: str
    started_at: str | None
    completed_at: str | None

    def checksum(self) -> int:
        """Of all but the priority, which shifts when another item is put before this one."""
        parts = [value or "" for value in (*self[:8], *self[9:])]
        return zlib.crc32("\x1f".join(parts).encode())

    def described(self) -> dict[str, Any]:
        """What the planner said of it, without what it left open."""
        told = {
            "title": self.title,
            "context": self.context,
            "completion_criteria": self.completion_criteria,
            "agent_type": self.agent_type,
        }
        return {"priority": self.priority, **{key: value for key, value in told.items() if value}}


_STATUS = {status.value: status for status in Status}


def from_row(row: tuple[Any, ...]) -> TurnTodo:
    """A row as it was read, after its checksum was found right."""
    todo = TurnTodo._make((*row[:7], _STATUS.get(row[7], row[7]), *row[8:13]))
    try:
        if todo.checksum() == row[13]:
            return todo
    except TypeError:
        # Something that is no text where text was written.
        pass
    raise StoreDamaged.not_as_written(f"Todo {todo.id!r} of the plan")


class Summary(TypedDict):
    total: int
    pending: int
    inProgress: int
    completed: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A turn's todos, those asked for, and the counts of all."""

    items: list[TurnTodo]
    counts: dict[Status, int]

    @property
    def remaining(self) -> int:
        return self.counts[Status.PENDING] + self.counts[Status.IN_PROGRESS]

    @property
    def summary(self) -> Summary:
        return {
            "total": sum(self.counts.values()),
            "pending": self.counts[Status.PENDING],
            "inProgress": self.counts[Status.IN_PROGRESS],
            "completed": self.counts[Status.COMPLETED],
            "cancelled": self.counts[Status.CANCELLED],
        }


@dataclass(frozen=True, slots=True)
class Created:
    """The todos of one batch, and how many are pending in all."""

    todos: list[TurnTodo]
    total_pending: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A todo that was completed or cancelled, and how many remain."""

    todo: TurnTodo
    remaining: int
