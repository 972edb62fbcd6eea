"""SQL of `access_tokens`. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.kernel.events import Role
from punchlist.storage.statements import Statement, insert, select
from punchlist.storage.store import Transaction
from punchlist.tokens.model import AccessToken

_ROW: Final = select("access_tokens", AccessToken._fields)

INSERT: Final = insert("access_tokens", AccessToken._fields)
FIND: Final = Statement(f"{_ROW} WHERE id = :id")
FIND_NAMED: Final = Statement(f"{_ROW} WHERE name = :name ORDER BY created_at DESC")
CHILDREN: Final = Statement(f"{_ROW} WHERE parent_id = :id AND revoked_at IS NULL")
ALL: Final = Statement(f"{_ROW} ORDER BY name, created_at, id")
COUNT: Final = Statement("SELECT count(*) FROM access_tokens WHERE revoked_at IS NULL")
REVOKE: Final = Statement("UPDATE access_tokens SET revoked_at = :at WHERE id = :id AND revoked_at IS NULL")


def insert_token(tx: Transaction, token: AccessToken) -> None:
    tx.run(INSERT, **{**token._asdict(), "role": token.role.value})


def find(tx: Transaction, id: str) -> AccessToken | None:
    row = tx.one(FIND, id=id)
    return _token(row) if row else None


def find_named(tx: Transaction, name: str) -> list[AccessToken]:
    """Newest first; at most one of them is not revoked."""
    return [_token(row) for row in tx.all(FIND_NAMED, name=name)]


def find_children(tx: Transaction, id: str) -> list[AccessToken]:
    """The cookies of browsers that logged in with a token and have not ended."""
    return [_token(row) for row in tx.all(CHILDREN, id=id)]


def find_all(tx: Transaction) -> list[AccessToken]:
    return [_token(row) for row in tx.all(ALL)]


def count_unrevoked(tx: Transaction) -> int:
    row = tx.one(COUNT)
    return int(row[0]) if row else 0


def revoke(tx: Transaction, id: str) -> bool:
    """False if it was revoked before."""
    return bool(tx.run(REVOKE, id=id, at=tx.now()))


def _token(row: tuple[Any, ...]) -> AccessToken:
    try:
        return AccessToken._make((*row[:2], Role(row[2]), *row[3:]))
    except ValueError:
        raise StoreDamaged.not_as_written(f"The access token {row[0]!r}") from None
