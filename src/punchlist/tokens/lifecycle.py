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


TOKEN: Final = Lifecycle(
    "access token",
    {
        (NEW, TokenAction.CREATE): TokenStatus.ACTIVE,
        (TokenStatus.ACTIVE, TokenAction.REVOKE): TokenStatus.REVOKED,
    },
    allowed=dict.fromkeys(TokenAction, frozenset({Role.PERSON})),
)
