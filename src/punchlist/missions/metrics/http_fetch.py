"""Fetches a document over HTTP for a collector, but only from public addresses (M7).

The host name is resolved once, every address is checked, and the connection goes to a checked address: a name that
resolves differently the second time (DNS rebinding) gains nothing. Proxies are not used, because they would hide the
real target. Redirects must stay on the host, and each is checked again.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

from punchlist.kernel.text import excerpt

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS: Final = 3
_PORTS: Final = {"http": 80, "https": 443}
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
# These networks embed IPv4 addresses.
_NAT64: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))


class FetchError(Exception):
    """The message contains no secrets."""


def fetch(
    url: str,
    *,
    headers: Mapping[str, str],
    environment: Mapping[str, str],
    seconds: float,
    max_bytes: int,
    allow_private: bool,
    body: bytes | None = None,
) -> bytes:
    """The document at `url`, or the answer to a POST of `body`. Raises `FetchError` past `max_bytes` or `seconds`."""
    target = _parse_url(url)
    request = _Request(_expand_headers(headers, environment), seconds, max_bytes, allow_private, body)
    result: Future[bytes] = Future()

    def run() -> None:
        try:
            result.set_result(request.get(target))
        except Exception as error:
            result.set_exception(error)

    # In a thread that can be abandoned: name resolution has no time limit of its own.
    threading.Thread(target=run, daemon=True).start()
    try:
        return result.result(seconds)
    except TimeoutError:
        request.abandon()
        raise FetchError(f"{_shown(target)} exceeded its time limit of {seconds:g} s") from None


def _parse_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise FetchError(f"{excerpt(url)!r} is not a web address") from None
    if parts.scheme not in _PORTS or not parts.hostname or port == 0 or re.search(r"[\x00-\x20\x7f]", url):
        raise FetchError(f"{excerpt(url)!r} is not a web address; it must begin with https:// or http://")
    if "@" in parts.netloc:
        raise FetchError("the address contains a user name or password; send them with `headers` and a ${VARIABLE}")
    return parts


def _shown(url: SplitResult) -> str:
    """The address without its query, which may contain a key."""
    return excerpt(f"{url.scheme}://{url.netloc}{url.path}", 200)


def _expand_headers(headers: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """With every ${NAME} replaced by that variable of our environment."""

    def variable(found: re.Match[str]) -> str:
        value = environment.get(found[1])
        if value is None:
            raise FetchError(f"a header needs the environment variable {found[1]}, which is not set")
        return value

    return {name: _VARIABLE.sub(variable, value) for name, value in headers.items()}


@dataclass(slots=True)
class _Request:
    headers: Mapping[str, str] = field(repr=False)
    seconds: float
    max_bytes: int
    allow_private: bool
    body: bytes | None = None
    open_socket: socket.socket | None = None

    def get(self, url: SplitResult) -> bytes:
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                answer = self._send(url)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException) as error:
                raise FetchError(f"{_shown(url)} cannot be reached: {_reason(error)}") from None
            except ValueError:
                # Such as a header with a line break; the message must not show its value.
                raise FetchError(
                    f"{_shown(url)} cannot be requested: its path or a header contains invalid characters"
                ) from None
            if isinstance(answer, bytes):
                return answer
            url = answer
        raise FetchError(f"{_shown(url)} redirected more than {_MAX_REDIRECTS} times")

    def abandon(self) -> None:
        """Called from another thread: interrupts the transfer."""
        if self.open_socket is not None:
            with suppress(OSError):
                self.open_socket.shutdown(socket.SHUT_RDWR)

    def _send(self, url: SplitResult) -> bytes | SplitResult:
        """The document, or the target of a redirect."""
        host, port = url.hostname or "", url.port or _PORTS[url.scheme]
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        sent = {"Accept": "application/json", "User-Agent": "punchlist", **self.headers}
        with closing(http.client.HTTPConnection(host, port)) as connection:
            self._connect(connection, tls=url.scheme == "https")
            sent |= {"Accept-Encoding": "identity", "Connection": "close"}
            connection.request("GET" if self.body is None else "POST", path, self.body, sent)
            with connection.getresponse() as response:
                follows = self.body is None and response.status in _REDIRECTS
                if follows and (location := response.getheader("Location")):
                    return _redirect_target(url, location)
                if response.status != http.client.OK and not (self.body is not None and response.status // 100 == 2):
                    raise FetchError(f"{_shown(url)} answered {response.status} {excerpt(response.reason or '', 60)}")
                document = response.read(self.max_bytes + 1)
        if len(document) > self.max_bytes:
            raise FetchError(f"{_shown(url)} answered with more than {self.max_bytes:,} bytes")
        return document

    def _connect(self, connection: http.client.HTTPConnection, *, tls: bool) -> None:
        """Give the connection a socket, so that it does not resolve the name again."""
        failure: OSError | None = None
        for address in _addresses(connection.host, connection.port, self.allow_private):
            try:
                connected = socket.create_connection((address, connection.port), timeout=self.seconds)
                break
            except OSError as error:
                failure = error
        else:
            raise failure or OSError("the host has no address")
        connection.sock = self.open_socket = connected
        if tls:
            wrap = ssl.create_default_context().wrap_socket
            secured = wrap(connected, server_hostname=connection.host, do_handshake_on_connect=False)
            # Before the handshake, which can block as well.
            connection.sock = self.open_socket = secured
            secured.do_handshake()


def _redirect_target(current: SplitResult, location: str) -> SplitResult:
    """The target of a redirect, which must stay on the host and must not leave TLS."""
    target = _parse_url(urljoin(current.geturl(), location))
    same_origin = (current.scheme, current.port) == (target.scheme, target.port)
    to_tls = (current.scheme, target.scheme, target.port or 443) == ("http", "https", 443)
    if current.hostname != target.hostname or not (same_origin or to_tls):
        raise FetchError(
            f"{_shown(current)} redirects to {excerpt(target.netloc)} ({target.scheme}), which is not followed; "
            "use the target address"
        )
    return target


def _addresses(host: str, port: int, allow_private: bool) -> list[str]:
    """The addresses of a host. Raises when one of them is not public."""
    try:
        found: list[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(f"the host {excerpt(host)!r} cannot be resolved: {_reason(error)}") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        if not allow_private and not is_public(address):
            raise FetchError(
                f"the host {excerpt(host)!r} is {address}, an address of this machine or of a private network, "
                "which is not requested unless a person allows it with PUNCHLIST_PRIVATE_ADDRESSES=allow"
            )
    return addresses


def is_public(address: str) -> bool:
    """Whether an address and every address embedded in it belong to the public internet."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.is_site_local:
            return False
        inner = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if any(found in network for network in _NAT64):
            inner.append(ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF))
        if embedded := [each for each in inner if each is not None]:
            return all(is_public(str(each)) for each in embedded)
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return excerpt(reason or type(error).__name__, 200)
