"""Who is let in over HTTP: the rules, without a wire.

A page that somebody has open in a browser can send requests to this machine, and a name of its own can be made to
point here. So a request must name us as we are called here (Host), must not come from a page of another place
(Origin), and must bring a token that no page knows.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from punchlist.surfaces.mcp.capabilities import Capabilities

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
SHORTEST_TOKEN: Final = 16

_TOKEN: Final = re.compile(rf"[!-~]{{{SHORTEST_TOKEN},512}}")
_BEARER: Final = re.compile(r"bearer +([!-~]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    why: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody with a token, and what it opens."""

    offer: Capabilities
    token: str


class Authenticator:
    def __init__(self, keys: Mapping[str, Capabilities], names: Collection[str] = ()) -> None:
        """`keys` are the tokens and what each opens; `names` are what this server is called beside its loopback
        names."""
        self._keys = dict(keys)
        self._names = LOOPBACK | {name.lower() for name in names}

    def admit(self, headers: Iterable[tuple[str, str]]) -> Principal | Refusal:
        given: dict[str, list[str]] = {}
        for name, value in headers:
            given.setdefault(name.lower(), []).append(value.strip())
        hosts, origins, tokens = (given.get(name, []) for name in ("host", "origin", "authorization"))
        if len(hosts) != 1 or _name_in(f"//{hosts[0]}") not in self._names:
            return Refusal(403, "Host: this server is not called so", {})
        if len(origins) > 1 or any(not self._welcome(origin) for origin in origins):
            return Refusal(403, "Origin: pages of other places are not answered", {})
        bearer = _BEARER.fullmatch(tokens[0]) if len(tokens) == 1 else None
        guest = self._who(bearer.group(1)) if bearer else None
        return guest or Refusal(401, "Authorization: a valid bearer token is needed", {"WWW-Authenticate": "Bearer"})

    def _welcome(self, origin: str) -> bool:
        return origin.lower().startswith(("http://", "https://")) and _name_in(origin) in self._names

    def _who(self, token: str) -> Principal | None:
        """All are compared, each in a time that says nothing of how alike they are."""
        found = None
        for key, offer in self._keys.items():
            if hmac.compare_digest(key.encode(), token.encode()):
                found = Principal(offer, key)
        return found


def _name_in(address: str) -> str | None:
    """The name or address of a machine, without its port; None where there is none to be read."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    return parts.hostname


def token_problem(token: str) -> str | None:
    """Why a token that somebody has chosen is not taken."""
    if _TOKEN.fullmatch(token) is None:
        return f"must be {SHORTEST_TOKEN} to 512 visible ASCII characters"
    return None


def is_wildcard(host: str) -> bool:
    """Whether it means all addresses of the machine, and so none that a client could name."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host.strip()
