"""Values of access tokens.

A token is `punchlist_ID_SECRET`. The database has the hash of the whole token, and a seal over the hash and everything
that the token grants. The seal is made with the user's key, which is not in the database: a token that another writer
of the database added or changed is not accepted.
"""

from __future__ import annotations

import re
import secrets
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, NamedTuple

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.events import Role, canonical_json
from punchlist.tokens.lifecycle import TokenStatus

TOKEN_ROLES: Final = tuple(role for role in Role if role is not Role.SYSTEM)
_TOKEN: Final = re.compile(r"punchlist_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")


LOGIN_CODE: Final = "login-"
LOGIN_COOKIE: Final = "web-"
LOGINS: Final = (LOGIN_CODE, LOGIN_COOKIE)
"""Beginnings of the names of one-time codes and cookies of the web server. They are no bearer tokens."""


class AccessToken(NamedTuple):
    """A row of `access_tokens`."""

    id: str
    name: str
    role: Role
    digest: str
    seal: str
    created_by: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    parent_id: str | None = None
    """The named token that a browser logged in with: its cookie ends with it."""

    @property
    def is_login(self) -> bool:
        return self.name.startswith(LOGINS)

    @property
    def status(self) -> TokenStatus:
        return TokenStatus.ACTIVE if self.revoked_at is None else TokenStatus.REVOKED

    @property
    def sealed_text(self) -> str:
        return f"access token {canonical_json(self.event_data())}"

    def as_json(self) -> dict[str, Any]:
        """Without what proves it: neither the hash nor the seal."""
        return camel_json(
            self, "id", "name", "role", "created_by", "created_at", "expires_at", "revoked_at", "parent_id"
        )

    def event_data(self) -> dict[str, str | None]:
        data = {
            "id": self.id,
            "name": self.name,
            "role": self.role.value,
            "digest": self.digest,
            "createdBy": self.created_by,
            "createdAt": self.created_at,
            "expiresAt": self.expires_at,
        }
        # Only where there is one: the seals of older tokens do not have it.
        return data if self.parent_id is None else {**data, "parentId": self.parent_id}


class TokenValidity(StrEnum):
    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"
    NOT_YOURS = "not yours"
    """Its seal was made with another user's key, or by another program."""


class ListedToken(NamedTuple):
    token: AccessToken
    validity: TokenValidity


class IssuedToken(NamedTuple):
    token: AccessToken
    text: str
    """What a client sends. It is not stored."""


def new_token_text() -> tuple[str, str]:
    """An id, and the token that contains it."""
    id = secrets.token_hex(6)
    return id, f"punchlist_{id}_{secrets.token_urlsafe(32)}"


def token_id(text: str) -> str | None:
    """The id in a token; None if the text is none of our tokens."""
    found = _TOKEN.fullmatch(text)
    return found[1] if found else None


def token_digest(text: str) -> str:
    # The token has 256 random bits: a fast hash is enough.
    return sha256(text.encode()).hexdigest()
