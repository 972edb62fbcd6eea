"""Who a token stands for, and what it gives access to.

The token that the server was started with is known here. Named tokens are read from the database at every request, so
that expiry and revocation hold at once, also for open sessions.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.subscriptions import ChangeNotifier

if TYPE_CHECKING:
    from punchlist.tokens.model import AccessToken
    from punchlist.tokens.service import AccessTokens


@dataclass(frozen=True, slots=True, eq=False)
class Principal:
    """The owner of a valid token."""

    id: str
    capabilities: Capabilities
    notifier: ChangeNotifier
    is_valid: Callable[[], bool] | None = None
    """Whether the token is still valid, for streams; None if it cannot end."""


@dataclass(frozen=True, slots=True)
class NamedTokens:
    tokens: AccessTokens
    capabilities: Callable[[AccessToken], Capabilities]


class Principals:
    def __init__(self, start_tokens: Mapping[str, Capabilities], named: NamedTokens | None = None) -> None:
        self._started = {
            text: Principal(f"start token {number}", capabilities, ChangeNotifier(capabilities))
            for number, (text, capabilities) in enumerate(start_tokens.items())
        }
        self._named = named
        self._by_id: dict[str, Principal] = {}

    def find_started(self, text: str) -> Principal | None:
        """Compare with every token, each in constant time."""
        found = None
        for known, principal in self._started.items():
            if hmac.compare_digest(known.encode(), text.encode()):
                found = principal
        return found

    def find_named(self, text: str) -> Principal | None:
        """Reads the database: for a thread."""
        if self._named is None:
            return None
        named = self._named
        token = named.tokens.find_valid(text)
        if token is None:
            return None
        if token.id not in self._by_id:
            capabilities = named.capabilities(token)
            self._by_id[token.id] = Principal(
                token.id, capabilities, ChangeNotifier(capabilities), lambda: named.tokens.find_valid(text) is not None
            )
        return self._by_id[token.id]
