"""The SQL of runs. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.runs.lifecycle import RESTING, WORKING, RunStatus
from punchlist.runs.model import Run, RunKind, from_row
from punchlist.storage.statements import (
    ROW_LOCK,
    SelectAll,
    SelectOne,
    Statement,
    insert,
    literals,
    select,
    update,
)
from punchlist.storage.store import Transaction

_SELECT: Final = select("runs", Run._fields)
_OLDEST_FIRST: Final = "ORDER BY created_at, id"
_NEWEST_FIRST: Final = "ORDER BY created_at DESC, id DESC"
_MUTABLE: Final = (
    *("status", "leg", "attempts", "executor", "turn_id", "wish", "message", "why", "result"),
    *("changed_at", "started_at", "ended_at", "input_tokens", "output_tokens", "cost", "calls", "seconds"),
    "delivered_to",
)
_BUSY: Final = literals(WORKING)
# A collection writes no turn, so it does not need the chat to itself.
_SHARED: Final = f"'{RunKind.COLLECT}'"

insert_run: Final = insert("runs", Run._fields)
find: Final = SelectOne(from_row, f"{_SELECT} WHERE id = :id")
lock: Final = SelectOne(from_row, f"{_SELECT} WHERE id = :id", lock=ROW_LOCK)
UPDATE: Final = update("runs", _MUTABLE, where="id = :run_id AND status = :was")
# Runs of one chat work one after the other.
ready: Final = SelectAll(
    from_row,
    f"{_SELECT} WHERE ended_at IS NULL AND status = '{RunStatus.QUEUED}' AND wish IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM missions WHERE missions.id = runs.mission_id AND missions.paused_at IS NOT NULL) "
    f"AND (kind = {_SHARED} OR NOT EXISTS ("
    "SELECT 1 FROM runs AS other WHERE other.conversation_id = runs.conversation_id "
    f"AND other.status IN ({_BUSY}) AND other.kind <> {_SHARED})) "
    f"{_OLDEST_FIRST} LIMIT :limit",
)
LOCK_MISSION: Final = Statement("SELECT paused_at FROM missions WHERE id = :mission_id", lock=ROW_LOCK)
CHAT_BUSY: Final = Statement(
    f"SELECT id FROM runs WHERE conversation_id = :conversation_id AND id <> :id AND status IN ({_BUSY}) "
    f"AND kind <> {_SHARED} LIMIT 1"
)
by_status: Final = SelectAll(from_row, f"{_SELECT} WHERE ended_at IS NULL AND status = :status {_OLDEST_FIRST}")
with_requests: Final = SelectAll(
    from_row, f"{_SELECT} WHERE ended_at IS NULL AND executor = :executor AND (wish IS NOT NULL OR message IS NOT NULL)"
)
open_in_mission: Final = SelectAll(
    from_row, f"{_SELECT} WHERE ended_at IS NULL AND mission_id = :mission_id {_OLDEST_FIRST}"
)
open_runs: Final = SelectAll(
    from_row,
    f"{_SELECT} WHERE ended_at IS NULL AND (:any = 1 OR mission_id = :mission_id) {_NEWEST_FIRST} LIMIT :limit",
)
newest: Final = SelectAll(from_row, f"{_SELECT} {_NEWEST_FIRST} LIMIT :limit")
of_mission: Final = SelectAll(from_row, f"{_SELECT} WHERE mission_id = :mission_id {_NEWEST_FIRST} LIMIT :limit")
by_todo: Final = SelectAll(from_row, f"{_SELECT} WHERE todo_id = :todo_id {_NEWEST_FIRST}")
delegations_of_todo: Final = SelectAll(
    from_row,
    f"{_SELECT} WHERE todo_id = :todo_id AND kind = '{RunKind.DELEGATE}' AND ended_at IS NULL {_OLDEST_FIRST}",
)
"""The open ones."""
open_of_kind: Final = SelectAll(
    from_row, f"{_SELECT} WHERE ended_at IS NULL AND mission_id = :mission_id AND kind = :kind"
)
latest_reviewed: Final = SelectOne(
    from_row,
    f"{_SELECT} WHERE mission_id = :mission_id AND kind = '{RunKind.CYCLE}' AND status = '{RunStatus.DONE}' "
    f"AND turn_id IS NOT NULL AND id <> :but {_NEWEST_FIRST} LIMIT 1",
)
"""The newest successful cycle whose turn, the review, was not left out."""
failed_planning: Final = SelectAll(
    from_row,
    f"{_SELECT} WHERE mission_id = :mission_id AND created_at > :since AND status = '{RunStatus.FAILED}' "
    f"AND kind IN ('{RunKind.CYCLE}', '{RunKind.PLAN}') "
    "AND NOT EXISTS (SELECT 1 FROM runs AS newer WHERE newer.mission_id = runs.mission_id "
    "AND newer.conversation_id = runs.conversation_id AND newer.kind = runs.kind "
    "AND (newer.created_at > runs.created_at OR (newer.created_at = runs.created_at AND newer.id > runs.id))) "
    f"{_OLDEST_FIRST}",
)
"""Failed cycles and planning runs that no newer one has replaced."""
failed_work: Final = SelectAll(
    from_row,
    f"{_SELECT} WHERE mission_id = :mission_id AND ended_at > :since AND status = '{RunStatus.FAILED}' "
    f"AND kind = '{RunKind.EXECUTE}' AND NOT EXISTS (SELECT 1 FROM runs AS newer WHERE newer.todo_id = runs.todo_id "
    f"AND newer.kind = runs.kind AND newer.id <> runs.id AND newer.created_at >= runs.created_at) {_OLDEST_FIRST}",
)
"""Failed work on todos that no newer run continues."""
failed_answers: Final = SelectAll(
    from_row,
    f"{_SELECT} WHERE (:any = 1 OR mission_id = :mission_id) AND ended_at > :since AND status = '{RunStatus.FAILED}' "
    f"AND kind IN ('{RunKind.CHAT}', '{RunKind.DELEGATE}') {_OLDEST_FIRST}",
)
"""Failed answers in chats and asynchronous delegations. Each has a request of its own."""
open_in_chat: Final = SelectAll(
    from_row, f"{_SELECT} WHERE conversation_id = :conversation_id AND ended_at IS NULL {_OLDEST_FIRST}"
)
_ANSWERS: Final = f"ended_at IS NULL AND kind = '{RunKind.CHAT}' AND status NOT IN ({literals(RESTING)})"
ANSWERING_RUN: Final = Statement(f"SELECT id FROM runs WHERE conversation_id = :conversation_id AND {_ANSWERS} LIMIT 1")
by_id_suffix: Final = SelectAll(from_row, f"{_SELECT} WHERE id LIKE :like LIMIT 2")
unanswered_chats: Final = SelectAll[tuple[str, str, str | None]](
    tuple,
    "SELECT DISTINCT queued.conversation_id, missions.id, pillars.id FROM queued_messages AS queued "
    "LEFT JOIN pillars ON queued.conversation_id IN (pillars.conversation_id, pillars.todo_conversation_id) "
    "JOIN missions ON missions.id = pillars.mission_id OR missions.conversation_id = queued.conversation_id "
    "WHERE queued.status = 'queued' AND missions.status = 'active' "
    f"AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.conversation_id = queued.conversation_id AND {_ANSWERS})",
)
"""Mission chats with queued messages and no run to answer them: (conversation id, mission id, pillar id)."""


def lock_unpaused_mission(tx: Transaction, run: Run) -> bool:
    """Lock the mission of a run, so that it is not paused meanwhile; False when it is paused."""
    row = tx.one(LOCK_MISSION, mission_id=run.mission_id) if run.mission_id is not None else None
    return row is None or row[0] is None


def is_answered(tx: Transaction, conversation_id: str) -> bool:
    """Whether a run answers the messages to a chat, or will. One that waits for a person does not."""
    return tx.one(ANSWERING_RUN, conversation_id=conversation_id) is not None


def working_in_chat(tx: Transaction, run: Run) -> str | None:
    """The id of another run that works in the run's chat."""
    if run.kind is RunKind.COLLECT:
        return None
    row = tx.one(CHAT_BUSY, conversation_id=run.conversation_id, id=run.id)
    return str(row[0]) if row is not None else None


def update_run(tx: Transaction, before: Run, changes: dict[str, Any]) -> Run | None:
    """The run after the update; None when its status changed since `before` was read."""
    after = before._replace(**changes)
    values = {name: getattr(after, name) for name in _MUTABLE}
    return after if tx.run(UPDATE, run_id=before.id, was=before.status.value, **values) else None
