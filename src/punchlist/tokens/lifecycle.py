"""The lifecycle of an access token. Expiry is a time, not a state."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle


class TokenStatus(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"


class TokenAction(StrEnum):
    CREATE = "create"
    REVOKE = "revoke"
    LOG_OUT = "log_out"


TOKEN: Final = Lifecycle(
    "access token",
    {
        (NEW, TokenAction.CREATE): TokenStatus.ACTIVE,
        (TokenStatus.ACTIVE, TokenAction.REVOKE): TokenStatus.REVOKED,
        (TokenStatus.ACTIVE, TokenAction.LOG_OUT): TokenStatus.REVOKED,
    },
    allowed={
        TokenAction.CREATE: frozenset({Role.PERSON}),
        TokenAction.REVOKE: frozenset({Role.PERSON}),
        # Of the caller's own browser.
        TokenAction.LOG_OUT: frozenset(Role),
    },
)
ENDINGS: Final = frozenset({TokenAction.REVOKE, TokenAction.LOG_OUT})
