"""SQL of the views of missions. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from punchlist.conversations.model import Message
from punchlist.missions.model import Escalation, MissionTodo
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.plan.lifecycle import OPEN
from punchlist.runs.model import Run, RunKind, from_row
from punchlist.storage.statements import SelectAll, SelectOne, columns, first_column, literals
from punchlist.storage.store import Transaction
from punchlist.toolcalls.repository import OPEN_APPROVAL

# --- the board --------------------------------------------------------------------------------------------

_TODO: Final = f"SELECT {columns((*MissionTodo._fields, 'checksum'))} FROM mission_todos"
# SQLite lowers ASCII letters only, so the text is also compared as it was typed.
_MATCHES: Final = (
    "AND (:pillar_id = '' OR pillar_id = :pillar_id) AND (:priority = '' OR priority = :priority) "
    "AND (:label = '' OR labels LIKE :label ESCAPE '!') "
    "AND (:search = '' OR lower(title) LIKE :lowered ESCAPE '!' OR title LIKE :search ESCAPE '!' "
    "OR lower(description) LIKE :lowered ESCAPE '!' OR description LIKE :search ESCAPE '!')"
)
_SINCE: Final = "WHERE mission_id = :mission_id AND ended_at >= :since"
ended_todos: Final = SelectAll(
    todo_repository.from_row,
    f"{_TODO} {_SINCE} AND ended_at <= :at AND NOT (ended_at = :at AND id >= :id) {_MATCHES} "
    "ORDER BY ended_at DESC, id DESC LIMIT :most",
)
"""A page of the ended todos that match, newest first, after (`at`, `id`)."""
count_ended: Final = SelectAll[tuple[str, int]](
    tuple, f"SELECT status, count(*) FROM mission_todos {_SINCE} GROUP BY status"
)
count_ended_matches: Final = SelectAll[tuple[str, int]](
    tuple, f"SELECT status, count(*) FROM mission_todos {_SINCE} {_MATCHES} GROUP BY status"
)
_UNARCHIVED: Final = "WHERE mission_id = :mission_id AND unarchived_at >= :since AND ended_at < :since"
unarchived_todos: Final = SelectAll(
    todo_repository.from_row,
    f"{_TODO} {_UNARCHIVED} AND ended_at <= :at AND NOT (ended_at = :at AND id >= :id) {_MATCHES} "
    "ORDER BY ended_at DESC, id DESC LIMIT :most",
)
"""As `ended_todos`, of those that ended before `since` and are shown again."""
count_unarchived: Final = SelectAll[tuple[str, int]](
    tuple, f"SELECT status, count(*) FROM mission_todos {_UNARCHIVED} {_MATCHES} GROUP BY status"
)
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


_IN_RANGE: Final = "FROM metric_readings WHERE metric_id = :metric_id AND at >= :since AND at < :until"
# A subquery with one min or max reads one entry of the index, several of them in one query read all.
_LAST: Final = f"(SELECT max(at) {_IN_RANGE})"
first_and_last: Final = SelectOne[tuple[str | None, str | None]](tuple, f"SELECT (SELECT min(at) {_IN_RANGE}), {_LAST}")
_interval: Final = SelectOne(
    ReadingInterval._make, f"SELECT {_LAST}, avg(value), min(value), max(value), count(*) {_IN_RANGE}"
)
readings_in_range: Final = SelectAll[tuple[str, float]](
    tuple, f"SELECT at, value {_IN_RANGE} ORDER BY at, position LIMIT :most"
)
time_of_newest: Final = SelectOne[str](
    first_column,
    "SELECT at FROM metric_readings WHERE metric_id = :metric_id "
    "ORDER BY at DESC, position DESC LIMIT 1 OFFSET :before",
)
"""When the reading was taken that has `before` newer ones."""
_TODO_STATUSES: Final = literals(TodoStatus)
completions: Final = SelectAll[tuple[str, str, str]](
    tuple,
    "SELECT at, subject, data FROM events WHERE substr(stream, 1, 8) = 'mission:' "
    f"AND to_status IN ({_TODO_STATUSES}) AND stream = :stream AND at >= :since AND at < :until "
    "AND to_status = 'completed' AND data LIKE :pattern ORDER BY at DESC LIMIT :most",
)
"""Time, todo id and event data of the completions whose data match, newest first."""
title_of: Final = SelectOne[str](first_column, "SELECT title FROM mission_todos WHERE id = :id")


def find_intervals(tx: Transaction, metric_id: str, bounds: list[tuple[str, str]]) -> list[ReadingInterval]:
    """The intervals that have readings."""
    found = (_interval(tx, metric_id=metric_id, since=since, until=until) for since, until in bounds)
    return [each for each in found if each is not None and each.readings]
