"""Pure checks of access tokens."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt
from punchlist.tokens.lifecycle import TokenStatus
from punchlist.tokens.model import AccessToken, TokenValidity

DEFAULT_LIFETIME: Final = "90d"
NEVER: Final = "never"
MAX_LIFETIME: Final = timedelta(days=3650)
MAX_TOKENS: Final = 1_000
WEBHOOK_PREFIX: Final = "whsec_"
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,48}[A-Za-z0-9])?")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

Seal = Callable[[str], str]


class Signer(Protocol):
    def sign(self, *fields: str) -> str: ...


def webhook_secret(signer: Signer, token_id: str) -> str:
    """What the sender of a webhook signs with: derived from the user's key and stored nowhere."""
    return WEBHOOK_PREFIX + base64.b64encode(bytes.fromhex(signer.sign("webhook", token_id))).decode()


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"name: must be 1 to 50 letters, digits, dots, dashes and underscores, got {excerpt(name)!r}"
        )
    return name


def parse_lifetime(written: str) -> timedelta | None:
    """`30m`, `24h`, `30d`, `8w`; None for `never`."""
    if written == NEVER:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([mhdw])", written)
    lifetime = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta(0)
    if not timedelta(0) < lifetime <= MAX_LIFETIME:
        raise InvalidInput(
            f"expires: must be a time such as 12h, 30d or 8w, at most {MAX_LIFETIME.days}d, or {NEVER}; "
            f"got {excerpt(written)!r}"
        )
    return lifetime


def validity(token: AccessToken, now: str, seal: Seal) -> TokenValidity:
    if token.status is TokenStatus.REVOKED:
        return TokenValidity.REVOKED
    if not hmac.compare_digest(token.seal, seal(token.sealed_text)):
        return TokenValidity.NOT_YOURS
    if token.expires_at is not None and token.expires_at <= now:
        return TokenValidity.EXPIRED
    return TokenValidity.VALID
