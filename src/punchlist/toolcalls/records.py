"""The SQL of tool calls, approvals and session rules, inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, bindparam, func, insert, literal_column, null, select, text, update

from punchlist.kernel.ids import new_id
from punchlist.storage.schema import approvals, tool_calls, tool_rules
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction
from punchlist.toolcalls.lifecycle import OPEN_APPROVALS, ApprovalStatus, Status
from punchlist.toolcalls.stored import StoredApproval, StoredCall, call_from_row


def _columns(table: Table, value: type[Any]) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in value._fields]


_CALL = [*_columns(tool_calls, StoredCall), tool_calls.c.checksum]
_APPROVAL = _columns(approvals, StoredApproval)
_OPEN: Final[list[Any]] = [literal_column(f"'{status}'") for status in sorted(OPEN_APPROVALS)]
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
_NAMES: Final = [column.name for column in tool_calls.c]

# Both databases know this clause; an id that is taken changes no row.
INSERT_CALL: Final = Statement(
    text(
        f"INSERT INTO tool_calls ({', '.join(_NAMES)}) VALUES ({', '.join(f':{name}' for name in _NAMES)}) "
        "ON CONFLICT (id) DO NOTHING"
    )
)
# What every end of a call writes, and no column of an index that need not change.
_ENDING: Final = ("exact", "status", "result", "output_file", "error_code", "explanation", "ended_at", "checksum")


def _update(columns: Sequence[str]) -> Statement:
    return Statement(
        update(tool_calls)
        .where(
            tool_calls.c.id == bindparam("call_id"),
            tool_calls.c.status == bindparam("from_status"),
            tool_calls.c.owner == bindparam("from_owner"),
        )
        .values({name: bindparam(name) for name in columns})
    )


UPDATE_CALL: Final = _update(_CHANGING)
END_CALL: Final = _update(_ENDING)
CALL: Final = Statement(select(*_CALL).where(tool_calls.c.id == bindparam("id")))
CALLS: Final = Statement(
    select(*_CALL)
    .where(tool_calls.c.conversation_id == bindparam("conversation_id"))
    .order_by(tool_calls.c.position.desc())
    .limit(bindparam("most"))
)
ALL_OF: Final = Statement(
    select(*_CALL).where(tool_calls.c.conversation_id == bindparam("conversation_id")).order_by(tool_calls.c.position)
)
OPEN_CALLS: Final = Statement(
    select(*_CALL)
    .where(tool_calls.c.conversation_id == bindparam("conversation_id"), tool_calls.c.ended_at.is_(None))
    .order_by(tool_calls.c.position)
)
OF_TURN: Final = Statement(
    select(*_CALL)
    .where(tool_calls.c.turn_id == bindparam("turn_id"))
    .order_by(tool_calls.c.position.desc())
    .limit(bindparam("most"))
)
COUNT_OF_TURN: Final = Statement(
    select(func.count()).select_from(tool_calls).where(tool_calls.c.turn_id == bindparam("turn_id"))
)
LAST_POSITION: Final = Statement(
    select(tool_calls.c.position)
    .where(tool_calls.c.conversation_id == bindparam("conversation_id"))
    .order_by(tool_calls.c.position.desc())
    .limit(1)
)
# What each server's tool looked like when it last ran.
LAST_FINGERPRINT: Final = Statement(
    select(tool_calls.c.fingerprint)
    .where(
        tool_calls.c.tool == bindparam("tool"),
        tool_calls.c.fingerprint.is_not(None),
        tool_calls.c.status == literal_column(f"'{Status.SUCCESS}'"),
    )
    .order_by(tool_calls.c.created_at.desc(), tool_calls.c.position.desc())
    .limit(1)
)

INSERT_APPROVAL: Final = Statement(insert(approvals).values({name: bindparam(name) for name in StoredApproval._fields}))
CLOSE_APPROVAL: Final = Statement(
    update(approvals)
    .where(approvals.c.call_id == bindparam("id"), approvals.c.status.in_(_OPEN))
    .values({name: bindparam(name) for name in _ANSWERED})
)
FORGET_ARGUMENTS: Final = Statement(
    update(approvals)
    .where(approvals.c.call_id == bindparam("id"), approvals.c.arguments.is_not(None))
    .values(arguments=null())
)
ESCALATE: Final = Statement(
    update(approvals)
    .where(
        approvals.c.call_id == bindparam("id"),
        approvals.c.status == literal_column(f"'{ApprovalStatus.PENDING}'"),
    )
    .values(status=bindparam("status"))
)
APPROVAL: Final = Statement(select(*_APPROVAL).where(approvals.c.call_id == bindparam("id")))
OPEN_APPROVALS_OF: Final = Statement(
    select(*_APPROVAL)
    .where(approvals.c.conversation_id == bindparam("conversation_id"), approvals.c.status.in_(_OPEN))
    .order_by(approvals.c.asked_at, approvals.c.call_id)
)
ALL_OPEN_APPROVALS: Final = Statement(
    select(*_APPROVAL).where(approvals.c.status.in_(_OPEN)).order_by(approvals.c.asked_at, approvals.c.call_id)
)
INSERT_RULE: Final = Statement(
    insert(tool_rules).values({column.name: bindparam(column.name) for column in tool_rules.c})
)
RULES: Final = Statement(
    select(tool_rules.c.rule, tool_rules.c.seal)
    .where(tool_rules.c.conversation_id == bindparam("conversation_id"))
    .order_by(tool_rules.c.id)
)


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


def count_of_turn(tx: Transaction, turn_id: str) -> int:
    row = tx.one(COUNT_OF_TURN, turn_id=turn_id)
    return int(row[0]) if row else 0


def all_of(tx: Transaction, conversation_id: str) -> list[StoredCall]:
    return [call_from_row(row) for row in tx.all(ALL_OF, conversation_id=conversation_id)]


def newest(tx: Transaction, conversation_id: str, most: int) -> list[StoredCall]:
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
