"""The SQL of notifications. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.storage.statements import SelectAll, Statement, insert, select


class Notification(NamedTuple):
    """A row of `notifications`: one request on one channel."""

    id: str
    channel: str
    request_id: str
    kind: str
    urgency: str
    status: str
    attempts: int
    due_at: str
    claimed_by: str | None
    claimed_until: str | None
    error: str | None
    created_at: str
    ended_at: str | None


_SELECT: Final = select("notifications", Notification._fields)
INSERT: Final = Statement(
    insert("notifications", Notification._fields).sql + " ON CONFLICT (channel, request_id) DO NOTHING"
)
known: Final = SelectAll[tuple[str, str]](
    tuple, "SELECT channel, request_id FROM notifications WHERE created_at >= :since OR status = 'pending'"
)
pending: Final = SelectAll(Notification._make, f"{_SELECT} WHERE status = 'pending' ORDER BY created_at, id")
# A second process that waits for the rows finds them claimed.
CLAIM: Final = Statement(
    "UPDATE notifications SET claimed_by = :claim, claimed_until = :until WHERE channel = :channel "
    "AND status = 'pending' AND due_at <= :now AND (claimed_until IS NULL OR claimed_until < :now)"
)
claimed: Final = SelectAll(
    Notification._make, f"{_SELECT} WHERE status = 'pending' AND claimed_by = :claim ORDER BY created_at, id"
)
END: Final = Statement(
    "UPDATE notifications SET status = :status, attempts = :attempts, error = :error, due_at = :due_at, "
    "claimed_until = NULL, ended_at = :ended_at WHERE id = :id AND status = 'pending'"
)
