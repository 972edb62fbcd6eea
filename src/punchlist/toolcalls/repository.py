"""The SQL of tool calls, approvals and session rules. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.storage.statements import SelectAll, SelectOne, Statement, first_column, insert, literals, select, update
from punchlist.storage.store import Transaction
from punchlist.toolcalls.lifecycle import OPEN_APPROVALS, CallStatus
from punchlist.toolcalls.stored_call import StoredApproval, StoredCall, call_from_row

_NAMES: Final = (*StoredCall._fields, "checksum")
_CALL: Final = select("tool_calls", _NAMES)
_APPROVAL: Final = select("approvals", StoredApproval._fields)
OPEN_APPROVAL: Final = (
    f"approvals.status IN ({literals(sorted(OPEN_APPROVALS))}) AND NOT EXISTS (SELECT 1 FROM tool_calls AS asking "
    "JOIN turns AS ended ON ended.id = asking.turn_id "
    "WHERE asking.id = approvals.call_id AND ended.ended_at IS NOT NULL)"
)
"""The condition for an approval that a person can answer: earlier versions left those of ended turns open."""
# Every end of a call writes these columns, and none that is part of an index besides.
_ENDING: Final = ("exact", "status", "result", "output_file", "error_code", "explanation", "ended_at", "checksum")
_CHANGING: Final = (*_ENDING, "arguments", "effect", "fingerprint", "owner", "started_at")
_ANSWER: Final = ("status", "outcome", "answered_by", "answered_at", "arguments", "reason", "answer_signature")
QUESTION_COLUMNS: Final = ("question", "why", "prefixes", "server", "asked_at", "expires_at", "question_signature")
_AS_SEEN: Final = "id = :call_id AND status = :from_status AND owner = :from_owner"

# An id that exists already changes no row.
INSERT_CALL: Final = insert("tool_calls", _NAMES, unless="id")
UPDATE_CALL: Final = update("tool_calls", _CHANGING, where=_AS_SEEN)
END_CALL: Final = update("tool_calls", _ENDING, where=_AS_SEEN)
find_call: Final = SelectOne(call_from_row, f"{_CALL} WHERE id = :id")
newest_calls: Final = SelectAll(
    call_from_row, f"{_CALL} WHERE conversation_id = :conversation_id ORDER BY position DESC LIMIT :limit"
)
calls_of_conversation: Final = SelectAll(
    call_from_row, f"{_CALL} WHERE conversation_id = :conversation_id ORDER BY position"
)
open_calls: Final = SelectAll(
    call_from_row, f"{_CALL} WHERE conversation_id = :conversation_id AND ended_at IS NULL ORDER BY position"
)
open_calls_of_turn: Final = SelectAll(
    call_from_row, f"{_CALL} WHERE turn_id = :turn_id AND ended_at IS NULL ORDER BY position"
)
newest_calls_of_turn: Final = SelectAll(
    call_from_row, f"{_CALL} WHERE turn_id = :turn_id ORDER BY position DESC LIMIT :limit"
)
_count_calls_of_turn: Final = SelectOne[int](first_column, "SELECT count(*) FROM tool_calls WHERE turn_id = :turn_id")
run_of_call: Final = SelectOne[str | None](
    first_column,
    "SELECT turns.run_id FROM tool_calls JOIN turns ON turns.id = tool_calls.turn_id WHERE tool_calls.id = :call_id",
)
"""The run whose turn a call belongs to."""
turn_end_of_call: Final = SelectOne[str | None](
    first_column,
    "SELECT turns.end_reason FROM tool_calls JOIN turns ON turns.id = tool_calls.turn_id "
    "WHERE tool_calls.id = :call_id AND turns.ended_at IS NOT NULL",
)
"""Why the turn of a call ended; None if it is open."""
find_worker: Final = SelectOne[str](first_column, "SELECT id FROM workers WHERE id = :id")
_last_position: Final = SelectOne[int](
    first_column,
    "SELECT position FROM tool_calls WHERE conversation_id = :conversation_id ORDER BY position DESC LIMIT 1",
)
last_fingerprint: Final = SelectOne[str](
    first_column,
    "SELECT fingerprint FROM tool_calls "
    f"WHERE tool = :tool AND fingerprint IS NOT NULL AND status = '{CallStatus.SUCCESS}' "
    "ORDER BY created_at DESC, position DESC LIMIT 1",
)
"""The fingerprint of a tool at its last successful call."""

insert_approval: Final = insert("approvals", StoredApproval._fields)
UPDATE_APPROVAL: Final = update("approvals", _ANSWER, where="call_id = :id AND status = :from_status")
REOPEN_APPROVAL: Final = update(
    "approvals", (*_ANSWER, *QUESTION_COLUMNS), where="call_id = :id AND status = :from_status"
)
FORGET_ARGUMENTS: Final = Statement(
    "UPDATE approvals SET arguments = NULL WHERE call_id = :id AND arguments IS NOT NULL"
)
find_approval: Final = SelectOne(StoredApproval._make, f"{_APPROVAL} WHERE call_id = :id")
edited_calls: Final = SelectAll[tuple[str, str, str]](
    tuple,
    "SELECT call_id, answered_by, tool_calls.arguments FROM approvals JOIN tool_calls ON tool_calls.id = call_id "
    "WHERE approvals.conversation_id = :conversation_id AND outcome = 'modify'",
)
"""Id, who has edited it, and its arguments, of each call that ran as a person has edited it."""
_open_approvals_of: Final = SelectAll(
    StoredApproval._make,
    f"{_APPROVAL} WHERE conversation_id = :conversation_id AND {OPEN_APPROVAL} ORDER BY asked_at, call_id",
)
expiring: Final = SelectAll(
    StoredApproval._make, f"{_APPROVAL} WHERE status = 'pending' AND expires_at <= :at ORDER BY asked_at, call_id"
)
"""Unanswered approvals whose time is up at this moment."""
newest_approvals: Final = SelectAll(
    StoredApproval._make,
    f"{_APPROVAL} WHERE substr(call_id, length(call_id) - length(:ending) + 1) = :ending "
    "ORDER BY asked_at DESC, call_id LIMIT :most",
)
"""Open or closed, with an id that ends like this."""
_all_open_approvals: Final = SelectAll(
    StoredApproval._make, f"{_APPROVAL} WHERE {OPEN_APPROVAL} ORDER BY asked_at, call_id"
)

INSERT_RULE: Final = insert("tool_rules", ("id", "conversation_id", "rule", "seal", "said_by", "created_at"))
rules_of_conversation: Final = SelectAll[str](
    first_column, "SELECT rule FROM tool_rules WHERE conversation_id = :conversation_id ORDER BY id"
)
RULES: Final = Statement("SELECT id, conversation_id, rule, seal, said_by, created_at FROM tool_rules ORDER BY id")
UPDATE_SEAL: Final = Statement("UPDATE tool_rules SET seal = :seal WHERE id = :id")


def last_position(tx: Transaction, conversation_id: str) -> int:
    return _last_position(tx, conversation_id) or 0


def count_calls_of_turn(tx: Transaction, turn_id: str) -> int:
    return _count_calls_of_turn(tx, turn_id) or 0


def insert_call(tx: Transaction, call: StoredCall) -> bool:
    """False when the id is taken."""
    return bool(tx.run(INSERT_CALL, **call._asdict(), checksum=call.checksum()))


def update_call(tx: Transaction, before: StoredCall, after: StoredCall) -> bool:
    """False when status or owner of the call have changed since `before` was read."""
    only_ending = after.ended_at is not None and _not_ending(before) == _not_ending(after)
    columns = after._asdict()
    columns["checksum"] = after.checksum()
    return bool(
        tx.run(
            END_CALL if only_ending else UPDATE_CALL,
            call_id=before.id,
            from_status=before.status,
            from_owner=before.owner,
            **{name: columns[name] for name in (_ENDING if only_ending else _CHANGING)},
        )
    )


def _not_ending(call: StoredCall) -> tuple[str | None, ...]:
    return call.arguments, call.effect, call.fingerprint, call.owner, call.started_at


def update_approval(tx: Transaction, before: StoredApproval, changes: dict[str, Any]) -> StoredApproval | None:
    after = before._replace(**{**changes, "status": str(changes["status"])})
    reopens = "question" in changes
    written = {name: getattr(after, name) for name in (*_ANSWER, *(QUESTION_COLUMNS if reopens else ()))}
    statement = REOPEN_APPROVAL if reopens else UPDATE_APPROVAL
    return after if tx.run(statement, id=before.call_id, from_status=before.status, **written) else None


def forget_arguments(tx: Transaction, call_id: str) -> None:
    tx.run(FORGET_ARGUMENTS, id=call_id)


def open_approvals(tx: Transaction, conversation_id: str | None) -> list[StoredApproval]:
    """Oldest first; those of all conversations without an id."""
    return _all_open_approvals(tx) if conversation_id is None else _open_approvals_of(tx, conversation_id)


def insert_rule(tx: Transaction, columns: dict[str, str]) -> None:
    tx.run(INSERT_RULE, **columns)


def update_seal(tx: Transaction, rule_id: str, seal: str) -> None:
    tx.run(UPDATE_SEAL, id=rule_id, seal=seal)


def all_rules(tx: Transaction) -> list[tuple[Any, ...]]:
    """Every rule: there are few, and which of them apply depends on what they contain."""
    return list(tx.all(RULES))
