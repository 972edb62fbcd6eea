"""SQL of `answered_requests`. The caller owns the transaction."""

from __future__ import annotations

from typing import Final

from punchlist.idempotency.model import StoredAnswer
from punchlist.storage.statements import SelectOne, Statement, columns

_COLUMNS: Final = columns(StoredAnswer._fields)
_VALUES: Final = ", ".join(f":{name}" for name in StoredAnswer._fields)

find: Final = SelectOne(
    StoredAnswer._make,
    f"SELECT {_COLUMNS} FROM answered_requests WHERE client = :client AND request_key = :request_key",
)
RESERVE: Final = Statement(f"INSERT INTO answered_requests ({_COLUMNS}) VALUES ({_VALUES}) ON CONFLICT DO NOTHING")
"""Waits for another transaction that has reserved the key and is not committed yet."""
STORE: Final = Statement(
    "UPDATE answered_requests SET status = :status, headers = :headers, body = :body "
    "WHERE client = :client AND request_key = :request_key"
)
RELEASE: Final = Statement(
    "DELETE FROM answered_requests WHERE client = :client AND request_key = :request_key AND status = 0"
)
FORGET: Final = Statement("DELETE FROM answered_requests WHERE answered_at < :before")
