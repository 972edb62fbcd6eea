"""SQL of the views of missions. The caller owns the transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

from punchlist.conversations.model import Message
from punchlist.missions.model import Escalation, MissionTodo
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.plan.lifecycle import OPEN
from punchlist.runs.model import Run, RunKind, from_row
from punchlist.storage.statements import SelectAll, SelectOne, columns, first_column, literals
from punchlist.toolcalls.repository import OPEN_APPROVAL

T = TypeVar("T")

# --- the board --------------------------------------------------------------------------------------------

_TODO: Final = f"SELECT {columns((*MissionTodo._fields, 'checksum'))} FROM mission_todos"
_SINCE: Final = "WHERE mission_id = :mission_id AND ended_at >= :since"
_UNARCHIVED: Final = "WHERE mission_id = :mission_id AND unarchived_at >= :since AND ended_at < :since"
_AFTER_PLACE: Final = "AND ended_at <= :at AND NOT (ended_at = :at AND id >= :id)"
_NEWEST_FIRST: Final = "ORDER BY ended_at DESC, id DESC LIMIT :most"
_FILTERS: Final = (
    "AND (:pillar_id = '' OR pillar_id = :pillar_id) AND (:priority = '' OR priority = :priority) "
    "AND (:label = '' OR labels LIKE :label ESCAPE '!')"
)
# LIKE of SQLite ignores the case of ASCII letters only; so does ILIKE with the collation C, which is several times
# faster than with others. Text with other letters is also compared in lower case.
_FOUND: Final = (
    "title LIKE :search ESCAPE '!' OR description LIKE :search ESCAPE '!' "
    "OR :lowered <> '' AND (title LIKE :lowered ESCAPE '!' OR description LIKE :lowered ESCAPE '!')"
)
_FOUND_POSTGRESQL: Final = (
    "title COLLATE \"C\" ILIKE :search ESCAPE '!' OR description COLLATE \"C\" ILIKE :search ESCAPE '!' "
    "OR :lowered <> '' AND (lower(title) LIKE :lowered ESCAPE '!' OR lower(description) LIKE :lowered ESCAPE '!')"
)


def _matching(build: Callable[[tuple[Any, ...]], T], select: str, end: str) -> SelectAll[T]:
    """With the filters of a board."""
    sql, postgresql = (
        f"{select} {_FILTERS} AND (:search = '' OR {found}) {end}" for found in (_FOUND, _FOUND_POSTGRESQL)
    )
    return SelectAll(build, sql, postgresql=postgresql)


def _status_count(row: tuple[Any, ...]) -> tuple[str, int]:
    return row[0], row[1]


_COUNT: Final = "SELECT status, count(*) FROM mission_todos"
ended_todos: Final = _matching(todo_repository.from_row, f"{_TODO} {_SINCE} {_AFTER_PLACE}", _NEWEST_FIRST)
"""A page of the ended todos that match, newest first, after (`at`, `id`)."""
count_ended: Final = SelectAll(_status_count, f"{_COUNT} {_SINCE} GROUP BY status")
count_ended_matches: Final = _matching(_status_count, f"{_COUNT} {_SINCE}", "GROUP BY status")
unarchived_todos: Final = _matching(todo_repository.from_row, f"{_TODO} {_UNARCHIVED} {_AFTER_PLACE}", _NEWEST_FIRST)
"""As `ended_todos`, of those that ended before `since` and are shown again."""
count_unarchived: Final = _matching(_status_count, f"{_COUNT} {_UNARCHIVED}", "GROUP BY status")
newest_runs_first: Final = SelectAll(
    from_row,
    f"SELECT {columns(Run._fields)} FROM runs WHERE kind = '{RunKind.EXECUTE}' AND todo_id IN ("
    f"SELECT id FROM mission_todos WHERE mission_id = :mission_id AND status = '{TodoStatus.IN_PROGRESS}' "
    "AND ended_at IS NULL) ORDER BY created_at DESC, id DESC",
)
"""All executions of the todos in progress."""

# --- requests of agents to people -------------------------------------------------------------------------


class AgentRequest(NamedTuple):
    """An approval or a question that a run of a mission waits for."""

    kind: Literal["approval", "question"]
    id: str
    run_id: str
    todo_id: str | None
    """None from a chat or from planning."""
    agent: str
    text: str
    asked_at: str


_OF_RUN: Final = (
    "JOIN runs ON runs.id = turns.run_id AND runs.mission_id = :mission_id AND runs.ended_at IS NULL "
    "AND (:todo_id = '' OR runs.todo_id = :todo_id)"
)
agent_requests: Final = SelectAll(
    AgentRequest._make,
    "SELECT 'approval' AS kind, approvals.call_id AS id, runs.id AS run_id, runs.todo_id, turns.agent_id, "
    "approvals.question, approvals.asked_at AS asked_at FROM approvals "
    "JOIN tool_calls ON tool_calls.id = approvals.call_id JOIN turns ON turns.id = tool_calls.turn_id "
    f"{_OF_RUN} WHERE {OPEN_APPROVAL} "
    "UNION ALL SELECT 'question', todo_conditions.id, runs.id, runs.todo_id, turns.agent_id, "
    "todo_conditions.subject, todo_conditions.created_at FROM todo_conditions "
    "JOIN turn_todos ON turn_todos.id = todo_conditions.todo_id "
    f"JOIN turns ON turns.id = todo_conditions.turn_id AND turns.ended_at IS NULL {_OF_RUN} "
    "WHERE todo_conditions.status = 'open' AND todo_conditions.kind = 'person' "
    f"AND turn_todos.status IN ({literals(sorted(OPEN))}) ORDER BY asked_at, id LIMIT :most",
)
"""The open ones of a mission, oldest first; of one todo, unless `todo_id` is empty."""
MAX_REQUESTS: Final = 10_000

# --- one todo ---------------------------------------------------------------------------------------------


class TodoEvent(NamedTuple):
    """An event of a todo."""

    version: int
    at: str
    actor: str
    action: str
    from_status: str | None
    to_status: str | None
    reason: str
    data: str


# The first condition is that of a partial index.
_TODO_EVENT: Final = (
    f"SELECT {columns(TodoEvent._fields)} FROM events WHERE substr(stream, 1, 8) = 'mission:' "
    "AND stream = :stream AND subject = :todo_id"
)
history: Final = SelectAll(TodoEvent._make, f"{_TODO_EVENT} AND version > :after ORDER BY version LIMIT :most")
history_until: Final = SelectAll(TodoEvent._make, f"{_TODO_EVENT} AND version <= :until ORDER BY version")
escalations_of_todo: Final = SelectAll(
    Escalation._make,
    f"SELECT {columns(Escalation._fields)} FROM escalations WHERE todo_id = :todo_id ORDER BY asked_at, id",
)
unanswered_of_todo: Final = SelectAll(
    Escalation._make,
    f"SELECT {columns(Escalation._fields)} FROM escalations WHERE todo_id = :todo_id AND status <> 'answered' "
    "ORDER BY asked_at, id",
)
_MESSAGE: Final = f"SELECT {columns(Message._fields)} FROM messages"
_AFTER: Final = "AND (created_at, position, id) > (:at, :position, :id) ORDER BY created_at, position, id LIMIT :most"
_BEFORE: Final = (
    "AND (created_at, position, id) < (:at, :position, :id) "
    "ORDER BY created_at DESC, position DESC, id DESC LIMIT :most"
)
said_after: Final = SelectAll(Message._make, f"{_MESSAGE} WHERE turn_id = :turn_id {_AFTER}")
said_before: Final = SelectAll(Message._make, f"{_MESSAGE} WHERE turn_id = :turn_id {_BEFORE}")
posted_after: Final = SelectAll(Message._make, f"{_MESSAGE} WHERE todo_id = :todo_id {_AFTER}")
posted_before: Final = SelectAll(Message._make, f"{_MESSAGE} WHERE todo_id = :todo_id {_BEFORE}")
"""Messages about a todo outside turns."""

# --- metrics ----------------------------------------------------------------------------------------------


class ReadingInterval(NamedTuple):
    """The readings of an interval."""

    at: str
    """Of the last one."""
    value: float
    """The mean."""
    low: float
    high: float
    readings: int


class MetricMark(NamedTuple):
    """A todo whose completion named the metric."""

    at: str
    todo_id: str
    title: str


_IN_RANGE: Final = "FROM metric_readings WHERE metric_id = :metric_id AND at >= :since AND at < :until"
# A subquery with one min or max reads one entry of the index, several of them in one query read all.
_LAST: Final = f"(SELECT max(at) {_IN_RANGE})"
first_and_last: Final = SelectOne[tuple[str, str]](tuple, f"SELECT (SELECT min(at) {_IN_RANGE}), {_LAST}")
has_more: Final = SelectOne[int](first_column, f"SELECT 1 {_IN_RANGE} ORDER BY at LIMIT 1 OFFSET :readings")
"""None unless a range has more than so many readings."""
interval: Final = SelectOne(
    ReadingInterval._make, f"SELECT {_LAST}, avg(value), min(value), max(value), count(*) {_IN_RANGE}"
)
readings_in_range: Final = SelectAll(
    ReadingInterval._make, f"SELECT at, value, value, value, 1 {_IN_RANGE} ORDER BY at, position LIMIT :most"
)
rollups: Final = SelectAll[tuple[int, ReadingInterval]](
    lambda row: (int(row[0]), ReadingInterval(row[1], row[2], row[3], row[4], int(row[5]))),
    "SELECT (period - :origin) / :each AS place, max(last_at), sum(total) / sum(readings), min(low), max(high), "
    "sum(readings) FROM metric_rollups WHERE metric_id = :metric_id AND seconds = :seconds "
    "AND period >= :start AND period < :end GROUP BY place ORDER BY place",
)
"""Intervals of `each` periods from `origin` on, with the number of each."""
time_of_newest: Final = SelectOne[str](
    first_column,
    "SELECT at FROM metric_readings WHERE metric_id = :metric_id "
    "ORDER BY at DESC, position DESC LIMIT 1 OFFSET :before",
)
"""When the reading was taken that has `before` newer ones."""
marks: Final = SelectAll(
    MetricMark._make,
    "SELECT at, todo_id, title FROM metric_marks JOIN mission_todos ON mission_todos.id = todo_id "
    "WHERE metric_id = :metric_id AND at >= :since AND at < :until ORDER BY at DESC, todo_id DESC LIMIT :most",
)
"""Newest first."""
title_of: Final = SelectOne[str](first_column, "SELECT title FROM mission_todos WHERE id = :id")
