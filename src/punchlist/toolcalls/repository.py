"""The SQL of tool calls, approvals and session rules, inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from punchlist.kernel.ids import new_id
from punchlist.storage.statements import Statement, columns, insert, literals, update
from punchlist.storage.store import Transaction
from punchlist.toolcalls.lifecycle import OPEN_APPROVALS, ApprovalStatus, CallStatus
from punchlist.toolcalls.stored_call import StoredApproval, StoredCall, call_from_row

_NAMES: Final = (*StoredCall._fields, "checksum")
_CALL: Final = f"SELECT {columns(_NAMES)} FROM tool_calls"
_APPROVAL: Final = f"SELECT {columns(StoredApproval._fields)} FROM approvals"
_OPEN: Final = f"status IN ({literals(sorted(OPEN_APPROVALS))})"
_CHANGING: Final = (
    "arguments",
    "exact",
    "status",
    "effect",
    "fingerprint",
    "owner",
    "result",
    "output_file",
    "error_code",
    "explanation",
    "started_at",
    "ended_at",
    "checksum",
)
_ANSWERED: Final = ("status", "outcome", "answered_by", "answered_at", "arguments", "reason")

# An id that is taken changes no row.
INSERT_CALL: Final = insert("tool_calls", _NAMES, unless="id")
# What every end of a call writes, and no column of an index that need not change.
_ENDING: Final = ("exact", "status", "result", "output_file", "error_code", "explanation", "ended_at", "checksum")
_AS_SEEN: Final = "id = :call_id AND status = :from_status AND owner = :from_owner"

UPDATE_CALL: Final = update("tool_calls", _CHANGING, where=_AS_SEEN)
END_CALL: Final = update("tool_calls", _ENDING, where=_AS_SEEN)
CALL: Final = Statement(f"{_CALL} WHERE id = :id")
CALLS: Final = Statement(f"{_CALL} WHERE conversation_id = :conversation_id ORDER BY position DESC LIMIT :most")
ALL_OF: Final = Statement(f"{_CALL} WHERE conversation_id = :conversation_id ORDER BY position")
OPEN_CALLS: Final = Statement(
    f"{_CALL} WHERE conversation_id = :conversation_id AND ended_at IS NULL ORDER BY position"
)
OF_TURN: Final = Statement(f"{_CALL} WHERE turn_id = :turn_id ORDER BY position DESC LIMIT :most")
COUNT_OF_TURN: Final = Statement("SELECT count(*) FROM tool_calls WHERE turn_id = :turn_id")
LAST_POSITION: Final = Statement(
    "SELECT position FROM tool_calls WHERE conversation_id = :conversation_id ORDER BY position DESC LIMIT 1"
)
# What each server's tool looked like when it last ran.
LAST_FINGERPRINT: Final = Statement(
    "SELECT fingerprint FROM tool_calls "
    f"WHERE tool = :tool AND fingerprint IS NOT NULL AND status = '{CallStatus.SUCCESS}' "
    "ORDER BY created_at DESC, position DESC LIMIT 1"
)

INSERT_APPROVAL: Final = insert("approvals", StoredApproval._fields)
CLOSE_APPROVAL: Final = update("approvals", _ANSWERED, where=f"call_id = :id AND {_OPEN}")
FORGET_ARGUMENTS: Final = Statement(
    "UPDATE approvals SET arguments = NULL WHERE call_id = :id AND arguments IS NOT NULL"
)
ESCALATE: Final = update("approvals", ["status"], where=f"call_id = :id AND status = '{ApprovalStatus.PENDING}'")
APPROVAL: Final = Statement(f"{_APPROVAL} WHERE call_id = :id")
OPEN_APPROVALS_OF: Final = Statement(
    f"{_APPROVAL} WHERE conversation_id = :conversation_id AND {_OPEN} ORDER BY asked_at, call_id"
)
ALL_OPEN_APPROVALS: Final = Statement(f"{_APPROVAL} WHERE {_OPEN} ORDER BY asked_at, call_id")
INSERT_RULE: Final = insert("tool_rules", ("id", "conversation_id", "rule", "seal", "said_by", "created_at"))
RULES: Final = Statement("SELECT rule, seal FROM tool_rules WHERE conversation_id = :conversation_id ORDER BY id")


def last_position(tx: Transaction, conversation_id: str) -> int:
    row = tx.one(LAST_POSITION, conversation_id=conversation_id)
    return int(row[0]) if row else 0


def insert_call(tx: Transaction, call: StoredCall) -> bool:
    """Whether the id was free."""
    return bool(tx.run(INSERT_CALL, **call._asdict(), checksum=call.checksum()))


def update_call(tx: Transaction, before: StoredCall, after: StoredCall) -> bool:
    """Whether the call was still as it was last seen, and ours."""
    only_ended = after.ended_at is not None and before == after._replace(
        exact=before.exact,
        status=before.status,
        result=before.result,
        output_file=before.output_file,
        error_code=before.error_code,
        explanation=before.explanation,
        ended_at=before.ended_at,
    )
    values = {name: getattr(after, name) for name in (_ENDING if only_ended else _CHANGING) if name != "checksum"}
    return bool(
        tx.run(
            END_CALL if only_ended else UPDATE_CALL,
            call_id=before.id,
            from_status=before.status,
            from_owner=before.owner,
            **values,
            checksum=after.checksum(),
        )
    )


def call(tx: Transaction, id: str) -> StoredCall | None:
    row = tx.one(CALL, id=id)
    return call_from_row(row) if row else None


def open_calls(tx: Transaction, conversation_id: str) -> list[StoredCall]:
    return [call_from_row(row) for row in tx.all(OPEN_CALLS, conversation_id=conversation_id)]


def count_calls_of_turn(tx: Transaction, turn_id: str) -> int:
    row = tx.one(COUNT_OF_TURN, turn_id=turn_id)
    return int(row[0]) if row else 0


def calls_of_conversation(tx: Transaction, conversation_id: str) -> list[StoredCall]:
    return [call_from_row(row) for row in tx.all(ALL_OF, conversation_id=conversation_id)]


def newest_calls(tx: Transaction, conversation_id: str, most: int) -> list[StoredCall]:
    """Newest first."""
    return [call_from_row(row) for row in tx.all(CALLS, conversation_id=conversation_id, most=most)]


def approval(tx: Transaction, id: str) -> StoredApproval | None:
    row = tx.one(APPROVAL, id=id)
    return StoredApproval._make(row) if row else None


def open_approvals(tx: Transaction, conversation_id: str | None) -> list[StoredApproval]:
    if conversation_id is None:
        rows: Sequence[tuple[Any, ...]] = tx.all(ALL_OPEN_APPROVALS)
    else:
        rows = tx.all(OPEN_APPROVALS_OF, conversation_id=conversation_id)
    return [StoredApproval._make(row) for row in rows]


def add_rule(tx: Transaction, conversation_id: str, rule: str, seal: str, said_by: str) -> None:
    values = {"conversation_id": conversation_id, "rule": rule, "seal": seal, "said_by": said_by}
    tx.run(INSERT_RULE, id=new_id(), created_at=tx.now(), **values)


def rules(tx: Transaction, conversation_id: str) -> list[tuple[str, str]]:
    """Each with its seal."""
    return [(row[0], row[1]) for row in tx.all(RULES, conversation_id=conversation_id)]
