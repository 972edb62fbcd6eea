"""Which requests an HTTP server considers. Pure: no I/O; the surfaces know the tokens.

A web page open in a browser on this machine can send requests to the server, and an attacker's host name can resolve
to this machine. So a request needs a known Host, no foreign Origin, and a bearer token.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
MIN_TOKEN_LENGTH: Final = 16

# Parsed strictly: a URL parser takes `[::1].evil.example` for `::1`.
_HOST: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9._-]{1,253}))(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
_MAX_PORT: Final = 65_535
_TOKEN: Final = re.compile(rf"[!-~]{{{MIN_TOKEN_LENGTH},512}}")
_BEARER: Final = re.compile(r"bearer +([!-~]+)", re.IGNORECASE)


class HttpRejection(Exception):
    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers or {}


class RequestGuard:
    def __init__(self, host_names: Collection[str] = ()) -> None:
        """`host_names` are the server's names in addition to the loopback names."""
        self._host_names = LOOPBACK_NAMES | {name.lower() for name in host_names}

    def check(self, headers: Iterable[tuple[str, str]]) -> None:
        """Raise for a request that was not meant for this server or that another site sent."""
        values = _by_name(headers)
        hosts, origins = (values.get(name, []) for name in ("host", "origin"))
        if len(hosts) != 1 or _host_name(hosts[0]) not in self._host_names:
            raise HttpRejection(403, "Host: not a name of this server")
        if len(origins) > 1 or any(not self._is_own_origin(origin) for origin in origins):
            raise HttpRejection(403, "Origin: requests from other sites are not allowed")

    def bearer_token(self, headers: Iterable[tuple[str, str]]) -> str:
        """The token of a request to this server; raises for requests that are not meant for it."""
        headers = list(headers)
        self.check(headers)
        authorizations = _by_name(headers).get("authorization", [])
        bearer = _BEARER.fullmatch(authorizations[0]) if len(authorizations) == 1 else None
        if bearer is None:
            raise invalid_token()
        return bearer.group(1)

    def _is_own_origin(self, origin: str) -> bool:
        scheme, separator, host = origin.partition("://")
        return scheme.lower() in ("http", "https") and bool(separator) and _host_name(host) in self._host_names


def _by_name(headers: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value.strip())
    return values


def invalid_token() -> HttpRejection:
    return HttpRejection(401, "Authorization: a valid bearer token is required", {"WWW-Authenticate": "Bearer"})


def _host_name(address: str) -> str | None:
    """The host of `HOST[:PORT]` in lower case; None for anything else."""
    found = _HOST.fullmatch(address)
    if found is None or int(found["port"] or 0) > _MAX_PORT:
        return None
    if found["name"] is not None:
        return found["name"].lower()
    try:
        return str(IPv6Address(found["ipv6"]))
    except ValueError:
        return None


def token_problem(token: str) -> str | None:
    """Why a token cannot be used, or None."""
    if _TOKEN.fullmatch(token) is None:
        return f"must be {MIN_TOKEN_LENGTH} to 512 visible ASCII characters"
    return None


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_wildcard(host: str) -> bool:
    """Whether `host` means all addresses of the machine, which no client can name."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host.strip()
