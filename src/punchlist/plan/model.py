"""Values of the plan."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypedDict

from punchlist.claims.model import Claim
from punchlist.conversations.model import TurnScope
from punchlist.errors import StoreDamaged
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.events import Actor, Change, Role
from punchlist.kernel.text import one_line, quoted, visible
from punchlist.plan.lifecycle import ConditionKind, ConditionStatus, PlanAction, PlanStatus
from punchlist.verification.model import NO_VERIFICATION, Check, Verification, decode


def plan_stream(turn_id: str) -> str:
    """The event stream of a turn's plan."""
    return f"plan:{turn_id}"


@dataclass(frozen=True, slots=True)
class NewCondition:
    """A condition as the planner states it; another todo is referenced by id or title."""

    kind: ConditionKind
    subject: str


@dataclass(frozen=True, slots=True)
class NewTodo:
    """A todo as the planner states it; `order` is a 1-indexed position."""

    title: str
    context: str = ""
    completion_criteria: str = ""
    agent_type: str | None = None
    order: int | None = None
    blocked_by: tuple[NewCondition, ...] = ()
    resources: tuple[str, ...] = ()
    id: str | None = None
    """Set by imports, so that todos of one batch can reference each other by id."""
    check: Check | None = None
    copied_from: str | None = None
    """The todo of an earlier turn that this one takes over (T14)."""

    def verification(self, author: Role) -> str | None:
        """The verification that the todo starts with. A copy keeps the author of its check."""
        if self.check is None and self.copied_from is None:
            return None
        check = self.check
        if check is not None and self.copied_from is None:
            check = replace(check, by_person=author is Role.PERSON)
        return Verification(check, copied_from=self.copied_from).encode()


class TurnTodo(NamedTuple):
    """A row of `turn_todos`. A named tuple because lists create many of them."""

    id: str
    conversation_id: str
    turn_id: str
    title: str
    context: str
    completion_criteria: str
    agent_type: str | None
    status: PlanStatus
    priority: int
    outcome: str | None = None
    created_at: str = ""
    started_at: str | None = None
    completed_at: str | None = None
    verification: str | None = None
    """Encoded; `verified` decodes it."""

    def checksum(self) -> int:
        return _checksum(self)

    def verified(self) -> Verification:
        """The check, its result, the evidence and who accepted it."""
        if self.verification is None:
            return NO_VERIFICATION
        try:
            return decode(self.verification)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StoreDamaged.not_as_written(f"The verification of todo {self.id!r}") from None

    def verification_at_end(self, actor: Actor, action: PlanAction, given: Verification | None) -> str | None:
        """The verification of the todo when it ends. A person who completes a todo accepts it."""
        if action is not PlanAction.COMPLETE or actor.role is not Role.PERSON:
            return self.verification if given is None else given.encode()
        return replace(self.verified() if given is None else given, accepted_by=str(actor)).encode()

    def creation_data(self) -> dict[str, Any]:
        """The data of the `create` event; empty fields are omitted."""
        texts = {
            "title": self.title,
            "context": self.context,
            "completion_criteria": self.completion_criteria,
            "agent_type": self.agent_type,
            "verification": self.verification,
        }
        return {"priority": self.priority, **{key: value for key, value in texts.items() if value}}


COLUMNS: Final = (*TurnTodo._fields, "checksum")
"""The columns of `turn_todos`, in the order of `TurnTodo`."""


def quoted_title(todo: TurnTodo) -> str:
    return f"“{visible(todo.title)}”"


def numbered_title(todo: TurnTodo) -> str:
    """For agents: with its number in the plan, by which a tool call can name it."""
    return f"{quoted_title(todo)} (number {todo.priority + 1})"


def title_for(role: Role) -> Callable[[TurnTodo], str]:
    """How messages for a role name todos. People see other numbers, which count all items of the session."""
    return quoted_title if role is Role.PERSON else numbered_title


_STATUS = {status.value: status for status in PlanStatus}


def todo_from_row(row: tuple[Any, ...]) -> TurnTodo:
    """Convert a row after verifying its checksum."""
    try:
        # Unpacked by name: slicing tuples takes longer than the rest of this function.
        id, session, turn, title, text, criteria, agent, status, order, outcome, created, start, end, proof, crc = row
        fields = (id, session, turn, title, text, criteria, agent, status, order, outcome, created, start, end, proof)
        if _checksum(fields) == crc:
            status = _STATUS.get(status, status)
            return TurnTodo(
                id, session, turn, title, text, criteria, agent, status, order, outcome, created, start, end, proof
            )
    except TypeError:
        # A column holds something other than text.
        pass
    raise StoreDamaged.not_as_written(f"Todo {row[0]!r} of the plan")


PRIORITY_UNIT: Final = 1 << 32
"""The checksum is a CRC-32 plus the priority times this, so that one UPDATE can move many todos."""


def _checksum(todo: Sequence[Any]) -> int:
    """Covers every column. Raises TypeError if one holds a value of another type."""
    id, session, turn, title, text, criteria, agent, status, priority, outcome, created, start, end, proof = todo
    parts = (
        id,
        session,
        turn,
        title,
        text,
        criteria,
        "" if agent is None else agent,
        status,
        "" if outcome is None else outcome,
        created,
        "" if start is None else start,
        "" if end is None else end,
        # Rows from before schema 0008 have none, and keep their checksum.
        *(() if proof is None else (proof,)),
    )
    crc: int = zlib.crc32("\x1f".join(parts).encode()) + priority * PRIORITY_UNIT
    return crc


def parse_todo_row(row: tuple[Any, ...]) -> TurnTodo | str:
    """A todo, or a description of what is wrong with the row (C11)."""
    try:
        todo = todo_from_row(row)
        if todo.verification is not None:
            todo.verified()
        if row[7] not in _STATUS:
            return f"Todo {row[0]!r} has the unknown status {row[7]!r}; it is skipped."
        if not todo.title.strip():
            return f"Todo {row[0]!r} has no title; it is skipped."
    except StoreDamaged as damage:
        return f"{damage} It is skipped."
    return todo


def todo_change(
    scope: TurnScope, action: str, before: PlanStatus | None, todo: TurnTodo, reason: str, data: dict[str, Any]
) -> Change:
    """The event of a change to a todo."""
    return Change(
        stream=plan_stream(scope.turn_id),
        conversation_id=scope.conversation_id,
        actor=str(scope.actor),
        action=action,
        subject=todo.id,
        from_status=before,
        to_status=todo.status,
        reason=reason,
        data=data,
    )


class Condition(NamedTuple):
    """A row of `todo_conditions`: something that must happen before a todo can be started."""

    id: str
    conversation_id: str
    turn_id: str
    todo_id: str
    kind: ConditionKind
    # By kind: the question, the time, the event's name, the other todo's id, the resource.
    subject: str
    status: ConditionStatus
    answer: str | None = None
    resolved_by: str | None = None
    resolved_at: str | None = None
    created_at: str = ""

    def event_data(self) -> dict[str, str]:
        return {"id": self.id, "kind": self.kind.value, "subject": self.subject}


def parse_condition_row(row: tuple[Any, ...]) -> Condition | str:
    """A condition, or a description of what is wrong with the row (C11)."""
    try:
        condition = Condition._make((*row[:4], ConditionKind(row[4]), row[5], ConditionStatus(row[6]), *row[7:]))
        if condition.kind is not ConditionKind.TIME or parse_timestamp(condition.subject).tzinfo is not None:
            return condition
    except (ValueError, TypeError):
        pass
    return f"{StoreDamaged.not_as_written(f'Condition {row[0]!r} of todo {row[3]!r}')} It is skipped."


class ConditionAnswer(NamedTuple):
    """A person's answer, or the note of an event that happened."""

    kind: ConditionKind
    subject: str
    text: str

    @property
    def description(self) -> str:
        """One line for models."""
        what = "answer to" if self.kind is ConditionKind.PERSON else "result of"
        return f"{what} {quoted(self.subject)}: {one_line(self.text)}"


@dataclass(frozen=True, slots=True)
class BlockedTodo:
    """A condition and the todo that it blocks."""

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
    """The requested todos of a turn and the counts of all its todos; the mappings are keyed by todo id."""

    items: list[TurnTodo]
    counts: dict[PlanStatus, int]
    waits: Mapping[str, list[str]] = field(default_factory=dict)
    answers: Mapping[str, list[ConditionAnswer]] = field(default_factory=dict)
    notes: Mapping[str, list[str]] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    next_cursor: str | None = None
    """Where the next page begins; None if there is none."""

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
    """All readable todos of a turn in order, with `problems` for the unreadable rows."""

    todos: list[TurnTodo]
    waits: Mapping[str, list[str]] = field(default_factory=dict)
    answers: Mapping[str, list[ConditionAnswer]] = field(default_factory=dict)
    notes: Mapping[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CreatedTodos:
    """The todos of one batch, the number of pending todos, and conflicts in the plan (C12)."""

    todos: list[TurnTodo]
    total_pending: int
    conflicts: list[str]


@dataclass(frozen=True, slots=True)
class EndedTodo:
    todo: TurnTodo
    remaining: int


@dataclass(frozen=True, slots=True)
class WaitingTodo:
    todo: TurnTodo
    waits_for: list[str]
    conflicts: list[str]


@dataclass(frozen=True, slots=True)
class FailedTodo:
    """A todo whose work failed: to be retried, or skipped."""

    todo: TurnTodo
    retry: bool
    remaining: int
