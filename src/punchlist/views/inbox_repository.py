"""SQL of the inbox. The caller owns the transaction.

One statement lists a page of the open requests of all kinds with their numbers, one counts them by kind, and one per
kind reads the details of those in a range of numbers. The database selects the page, and no other request is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from punchlist.plan.lifecycle import OPEN
from punchlist.storage.statements import (
    WHOLE_ROW_LOCK,
    SelectAll,
    SelectOne,
    Statement,
    columns,
    first_column,
    literals,
    update,
)
from punchlist.storage.store import Transaction
from punchlist.toolcalls.repository import OPEN_APPROVAL
from punchlist.toolcalls.stored_call import StoredApproval, StoredCall, call_from_row


class OpenRequest(NamedTuple):
    kind: str
    id: str
    at: str
    number: int | None
    """None until it is listed for the first time."""


class RequestRow(NamedTuple):
    """What all kinds of requests have in common."""

    number: int | None
    id: str
    subject: str
    question: str
    asked_at: str
    session: str | None
    requester: str | None
    mission: str | None
    pillar: str | None
    todo_id: str | None
    todo_title: str | None
    run_id: str | None


# --- which requests are open ------------------------------------------------------------------------------

_CONDITIONS: Final = (
    "FROM todo_conditions JOIN turn_todos ON turn_todos.id = todo_conditions.todo_id "
    "JOIN turns ON turns.id = todo_conditions.turn_id"
)
# A time needs a person only if it has passed and no process continues the turn.
_OPEN_CONDITION: Final = (
    "todo_conditions.status = 'open' AND turns.ended_at IS NULL "
    f"AND turn_todos.status IN ({literals(sorted(OPEN))}) AND (todo_conditions.kind IN ('person', 'event') "
    "OR (todo_conditions.kind = 'time' AND todo_conditions.subject <= :overdue AND turns.owner IS NULL))"
)
_CONDITION_KIND: Final = "CASE todo_conditions.kind WHEN 'person' THEN 'question' ELSE todo_conditions.kind END"
_OPEN_FAILURE: Final = (
    "runs.status = 'failed' AND runs.kind IN ('cycle', 'plan', 'chat', 'delegate') AND missions.status = 'active' "
    "AND NOT EXISTS (SELECT 1 FROM runs AS newer WHERE newer.conversation_id = runs.conversation_id "
    "AND newer.kind = runs.kind AND newer.mission_id = runs.mission_id "
    # A failed answer is replaced only by one: another failed run has another message.
    "AND (runs.kind <> 'chat' OR newer.status = 'done') "
    "AND (newer.created_at > runs.created_at OR (newer.created_at = runs.created_at AND newer.id > runs.id)))"
)
_LAST_SEEN: Final = "coalesce((SELECT max(seen_at) FROM workers), '')"
_WITHOUT_WORKER: Final = f"CASE WHEN {_LAST_SEEN} > missions.created_at THEN {_LAST_SEEN} ELSE missions.created_at END"
_IN_CHAT_OF_MISSION: Final = (
    "(conversation_id = missions.conversation_id OR EXISTS (SELECT 1 FROM pillars "
    "WHERE pillars.mission_id = missions.id "
    "AND queued_messages.conversation_id IN (pillars.conversation_id, pillars.todo_conversation_id)))"
)
# A quote inside a text is escaped in JSON, so a text cannot match.
_NEEDS_WORKER: Final = (
    "missions.status = 'active' AND missions.paused_at IS NULL "
    f"AND {_WITHOUT_WORKER} <= :alone_since "
    "AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.ended_at IS NULL AND workers.seen_at > :alive_since) "
    """AND (missions.json_config LIKE '%"cron":"%' """
    "OR EXISTS (SELECT 1 FROM runs WHERE runs.mission_id = missions.id AND runs.ended_at IS NULL) "
    f"OR EXISTS (SELECT 1 FROM queued_messages WHERE status = 'queued' AND {_IN_CHAT_OF_MISSION}))"
)
_WORKER_ID: Final = f"'worker-' || missions.slug || '-' || {_WITHOUT_WORKER}"

_NOT_ARCHIVED: Final = "mission_id NOT IN (SELECT id FROM missions WHERE status = 'archived')"
_OPEN: Final = (
    f"(SELECT 'approval' AS kind, call_id AS id, asked_at AS at FROM approvals WHERE {OPEN_APPROVAL} "
    f"UNION ALL SELECT {_CONDITION_KIND}, todo_conditions.id, todo_conditions.created_at {_CONDITIONS} "
    f"WHERE {_OPEN_CONDITION} "
    f"UNION ALL SELECT 'escalation', id, asked_at FROM escalations WHERE status <> 'answered' AND {_NOT_ARCHIVED} "
    "UNION ALL SELECT 'failure', runs.id, coalesce(runs.ended_at, runs.changed_at) FROM runs "
    f"JOIN missions ON missions.id = runs.mission_id WHERE {_OPEN_FAILURE} "
    f"UNION ALL SELECT 'budget', id, reached_at FROM budget_stops WHERE ended_at IS NULL AND {_NOT_ARCHIVED} "
    f"UNION ALL SELECT 'worker', {_WORKER_ID}, {_WITHOUT_WORKER} FROM missions WHERE {_NEEDS_WORKER}"
    ") AS requests"
)
# Few are acknowledged, so this is cheaper than a condition on each joined row.
_UNACKNOWLEDGED: Final = "requests.id NOT IN (SELECT id FROM inbox_requests WHERE acknowledged_at IS NOT NULL)"
_SELECT_OPEN: Final = (
    f"SELECT requests.kind, requests.id, requests.at, numbered.number FROM {_OPEN} "
    "LEFT JOIN inbox_requests AS numbered ON numbered.id = requests.id "
)
open_requests: Final = SelectAll(
    OpenRequest._make,
    f"{_SELECT_OPEN} WHERE {_UNACKNOWLEDGED} AND (numbered.number IS NULL OR numbered.number > :after) "
    "ORDER BY coalesce(numbered.number, 0), requests.at, requests.id LIMIT :most",
)
"""The open requests after a number that were not acknowledged: first those without a number, then by number."""
open_ids: Final = SelectAll(
    OpenRequest._make,
    f"{_SELECT_OPEN} WHERE {_UNACKNOWLEDGED} AND requests.id LIKE :pattern ESCAPE '!' LIMIT :most",
)
"""As `open_requests`, with an id that matches."""
_OF_TURN: Final = "JOIN turns ON turns.id = {table}.turn_id JOIN runs ON runs.id = turns.run_id"
_ABOUT_TODO: Final = (
    "SELECT approvals.call_id FROM approvals JOIN tool_calls ON tool_calls.id = approvals.call_id "
    f"{_OF_TURN.format(table='tool_calls')} WHERE {OPEN_APPROVAL} AND runs.todo_id = :todo_id "
    f"UNION ALL SELECT todo_conditions.id FROM todo_conditions {_OF_TURN.format(table='todo_conditions')} "
    "WHERE todo_conditions.status = 'open' AND runs.todo_id = :todo_id "
    "UNION ALL SELECT id FROM escalations WHERE status <> 'answered' AND todo_id = :todo_id "
    "UNION ALL SELECT id FROM runs WHERE status = 'failed' AND todo_id = :todo_id "
    "UNION ALL SELECT id FROM budget_stops WHERE ended_at IS NULL AND todo_id = :todo_id"
)
_FROM_CHAT: Final = (
    f"SELECT call_id FROM approvals WHERE {OPEN_APPROVAL} AND conversation_id = :conversation_id "
    "UNION ALL SELECT id FROM todo_conditions WHERE status = 'open' AND conversation_id = :conversation_id "
    "UNION ALL SELECT id FROM runs WHERE status = 'failed' AND conversation_id = :conversation_id"
)
_BY_NUMBER: Final = "ORDER BY numbered.number, requests.at, requests.id LIMIT :most"
about_todo: Final = SelectAll(
    OpenRequest._make, f"{_SELECT_OPEN} WHERE {_UNACKNOWLEDGED} AND requests.id IN ({_ABOUT_TODO}) {_BY_NUMBER}"
)
"""The open requests that a mission todo and the work on it wait for."""
from_chat: Final = SelectAll(
    OpenRequest._make, f"{_SELECT_OPEN} WHERE {_UNACKNOWLEDGED} AND requests.id IN ({_FROM_CHAT}) {_BY_NUMBER}"
)
"""The open requests of the agents in a conversation."""
count_open: Final = SelectAll[tuple[str, int]](
    tuple,
    f"SELECT requests.kind, count(*) FROM {_OPEN} WHERE {_UNACKNOWLEDGED} GROUP BY requests.kind",
)

# --- numbers ----------------------------------------------------------------------------------------------

LOCK_NUMBERS: Final = Statement("SELECT number FROM inbox_requests WHERE number = 0", lock=WHOLE_ROW_LOCK)
id_of_number: Final = SelectOne[str](first_column, "SELECT id FROM inbox_requests WHERE number = :number")
newest_number: Final = SelectOne[int](first_column, "SELECT max(number) FROM inbox_requests")
INSERT_NUMBER: Final = Statement(
    "INSERT INTO inbox_requests (number, id) VALUES (:number, :id) ON CONFLICT (id) DO NOTHING"
)
ACKNOWLEDGE: Final = update(
    "inbox_requests", ("acknowledged_by", "acknowledged_at"), where="id = :id AND acknowledged_at IS NULL"
)


def assign_numbers(tx: Transaction, ids: list[str]) -> None:
    """Give the ids that have none a number, in this order."""
    tx.one(LOCK_NUMBERS)
    number = newest_number(tx) or 0
    for id in ids:
        number += tx.run(INSERT_NUMBER, number=number + 1, id=id)


# --- details ----------------------------------------------------------------------------------------------

_PLACE: Final = (
    "LEFT JOIN runs ON runs.id = turns.run_id LEFT JOIN missions ON missions.id = runs.mission_id "
    "LEFT JOIN pillars ON pillars.id = runs.pillar_id LEFT JOIN mission_todos ON mission_todos.id = runs.todo_id"
)
_PLACE_COLUMNS: Final = "missions.slug, pillars.slug, runs.todo_id, mission_todos.title, runs.id"
_NUMBERED: Final = "FROM {table} JOIN inbox_requests AS numbered ON numbered.id = {table}.{id}"
_IN_RANGE: Final = "numbered.number >= :first AND numbered.number <= :last"
_WIDTH: Final = len(RequestRow._fields)
_CALL_WIDTH: Final = len(StoredCall._fields) + 1

T = TypeVar("T")


class RequestDetails(Generic[T]):
    """The details of the open requests of a kind in a range of numbers."""

    def __init__(self, make: Callable[[Any], T], sql: str) -> None:
        self.numbered = SelectAll(make, sql)
        # In a database that cannot be written, requests that are listed for the first time have no number.
        unnumbered = sql.replace("JOIN inbox_requests", "LEFT JOIN inbox_requests")
        self.all = SelectAll(make, unnumbered.replace(_IN_RANGE, f"(numbered.number IS NULL OR ({_IN_RANGE}))"))


ApprovalRow = tuple[RequestRow, StoredCall, StoredApproval]


def _approval(row: tuple[Any, ...]) -> ApprovalRow:
    call, approval = row[_WIDTH : _WIDTH + _CALL_WIDTH], row[_WIDTH + _CALL_WIDTH :]
    return RequestRow._make(row[:_WIDTH]), call_from_row(call), StoredApproval._make(approval)


approvals: Final = RequestDetails(
    _approval,
    "SELECT numbered.number, approvals.call_id, tool_calls.tool, approvals.question, approvals.asked_at, "
    f"approvals.conversation_id, turns.agent_id, {_PLACE_COLUMNS}, "
    f"{columns((*StoredCall._fields, 'checksum'), of='tool_calls')}, {columns(StoredApproval._fields, of='approvals')} "
    f"{_NUMBERED.format(table='approvals', id='call_id')} JOIN tool_calls ON tool_calls.id = approvals.call_id "
    f"LEFT JOIN turns ON turns.id = tool_calls.turn_id {_PLACE} "
    f"WHERE {_IN_RANGE} AND {OPEN_APPROVAL}",
)
conditions: Final = RequestDetails[tuple[str, str, RequestRow]](
    lambda row: (row[0], row[1], RequestRow._make(row[2:])),
    "SELECT todo_conditions.kind, todo_conditions.todo_id, numbered.number, todo_conditions.id, turn_todos.title, "
    "todo_conditions.subject, todo_conditions.created_at, todo_conditions.conversation_id, turns.agent_id, "
    f"{_PLACE_COLUMNS} {_NUMBERED.format(table='todo_conditions', id='id')} "
    "JOIN turn_todos ON turn_todos.id = todo_conditions.todo_id "
    f"JOIN turns ON turns.id = todo_conditions.turn_id {_PLACE} "
    f"WHERE {_IN_RANGE} AND {_OPEN_CONDITION}",
)
"""The kind of the condition, the id of its plan todo, and the request."""
escalations: Final = RequestDetails[tuple[RequestRow, str]](
    lambda row: (RequestRow._make(row[:_WIDTH]), row[_WIDTH]),
    "SELECT numbered.number, escalations.id, escalations.kind, escalations.question, escalations.asked_at, NULL, "
    "'system:punchlist', missions.slug, pillars.slug, escalations.todo_id, mission_todos.title, "
    "(SELECT runs.id FROM runs WHERE runs.todo_id = escalations.todo_id ORDER BY runs.created_at DESC LIMIT 1), "
    f"escalations.status {_NUMBERED.format(table='escalations', id='id')} "
    "JOIN missions ON missions.id = escalations.mission_id "
    "JOIN mission_todos ON mission_todos.id = escalations.todo_id JOIN pillars ON pillars.id = mission_todos.pillar_id "
    f"WHERE {_IN_RANGE} AND escalations.status <> 'answered' AND missions.status = 'active'",
)
"""The request, and the status of the escalation."""
failures: Final = RequestDetails[tuple[RequestRow, int]](
    lambda row: (RequestRow._make(row[:_WIDTH]), row[_WIDTH]),
    "SELECT numbered.number, runs.id, runs.kind, runs.why, coalesce(runs.ended_at, runs.changed_at), NULL, "
    "runs.created_by, missions.slug, pillars.slug, runs.todo_id, mission_todos.title, runs.id, runs.leg "
    f"{_NUMBERED.format(table='runs', id='id')} JOIN missions ON missions.id = runs.mission_id "
    "LEFT JOIN mission_todos ON mission_todos.id = runs.todo_id "
    f"LEFT JOIN pillars ON pillars.id = runs.pillar_id WHERE {_IN_RANGE} AND {_OPEN_FAILURE}",
)
"""The request, and how often the run was retried."""
budgets: Final = RequestDetails(
    RequestRow._make,
    "SELECT numbered.number, budget_stops.id, CASE WHEN budget_stops.todo_id IS NULL THEN 'day' ELSE 'todo' END, "
    "budget_stops.explanation, budget_stops.reached_at, NULL, 'system:punchlist', missions.slug, pillars.slug, "
    "budget_stops.todo_id, mission_todos.title, NULL "
    f"{_NUMBERED.format(table='budget_stops', id='id')} JOIN missions ON missions.id = budget_stops.mission_id "
    "LEFT JOIN mission_todos ON mission_todos.id = budget_stops.todo_id "
    f"LEFT JOIN pillars ON pillars.id = mission_todos.pillar_id WHERE {_IN_RANGE} AND budget_stops.ended_at IS NULL "
    "AND missions.status = 'active'",
)
missions_without_worker: Final = RequestDetails(
    RequestRow._make,
    f"SELECT numbered.number, {_WORKER_ID}, 'worker', '', {_WITHOUT_WORKER}, NULL, 'system:punchlist', missions.slug, "
    "NULL, NULL, NULL, NULL FROM missions "
    f"JOIN inbox_requests AS numbered ON numbered.id = {_WORKER_ID} WHERE {_IN_RANGE} AND {_NEEDS_WORKER}",
)
