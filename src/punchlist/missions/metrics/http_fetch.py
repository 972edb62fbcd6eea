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
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

from punchlist.kernel.text import excerpt

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS: Final = 3
_PORTS: Final = {"http": 80, "https": 443}
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CHUNK: Final = 65_536
# These networks embed IPv4 addresses.
_NAT64: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
) -> bytes:
    """The document at `url`. Raises `FetchError` past `max_bytes` or `seconds`."""
    request = _Request(_parse_url(url), _expand_headers(headers, environment), max_bytes, allow_private)
    # In a thread that can be abandoned: name resolution has no time limit of its own.
    thread = threading.Thread(target=request.run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        request.abandon()
        raise FetchError(f"{request.shown} exceeded its time limit of {seconds:g} s")
    if request.failure is not None:
        raise request.failure
    return request.document


def _parse_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise FetchError(f"{excerpt(url)!r} is not a web address") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise FetchError(f"{excerpt(url)!r} is not a web address; it must begin with https:// or http://")
    if "@" in parts.netloc:
        raise FetchError("the address contains a user name or password; send them with `headers` and a ${VARIABLE}")
    if port == 0 or re.search(r"[\x00-\x20\x7f]", url):
        raise FetchError(f"{excerpt(url)!r} is not a web address")
    return parts


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
    url: SplitResult
    headers: Mapping[str, str] = field(repr=False)
    max_bytes: int
    allow_private: bool
    document: bytes = b""
    failure: FetchError | None = None
    connection: _PinnedConnection | None = None
    response: http.client.HTTPResponse | None = None

    @property
    def shown(self) -> str:
        """The address without its query, which may contain a key."""
        return excerpt(f"{self.url.scheme}://{self.url.netloc}{self.url.path}", 200)

    def run(self) -> None:
        try:
            self.document = self._follow()
        except FetchError as failure:
            self.failure = failure
        except (OSError, http.client.HTTPException) as error:
            self.failure = FetchError(f"{self.shown} cannot be reached: {_reason(error)}")
        except ValueError:
            # Such as a header with a line break; the message must not show its value.
            self.failure = FetchError(
                f"{self.shown} cannot be requested: its path or a header contains invalid characters"
            )
        finally:
            self._close()

    def abandon(self) -> None:
        """Called from another thread: interrupts the transfer."""
        if self.connection is not None:
            self.connection.cut()

    def _close(self) -> None:
        if self.response is not None:
            self.response.close()
        if self.connection is not None:
            self.connection.close()

    def _follow(self) -> bytes:
        for _ in range(_MAX_REDIRECTS + 1):
            response = self._send()
            if response.status in _REDIRECTS and (location := response.getheader("Location")):
                self.url = self._redirect_target(location)
                continue
            if response.status != http.client.OK:
                raise FetchError(f"{self.shown} answered {response.status} {excerpt(response.reason or '', 60)}")
            return self._read(response)
        raise FetchError(f"{self.shown} redirected more than {_MAX_REDIRECTS} times")

    def _send(self) -> http.client.HTTPResponse:
        self._close()
        host = self.url.hostname or ""
        port = self.url.port or _PORTS[self.url.scheme]
        addresses = _addresses(host, port, self.allow_private)
        self.connection = _PinnedConnection(host, port, addresses, tls=self.url.scheme == "https")
        path = (self.url.path or "/") + (f"?{self.url.query}" if self.url.query else "")
        sent = {"Accept": "application/json", "User-Agent": "punchlist", **self.headers}
        self.connection.request("GET", path, headers={**sent, "Accept-Encoding": "identity", "Connection": "close"})
        self.response = self.connection.getresponse()
        return self.response

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        document = bytearray()
        while data := response.read(_CHUNK):
            document += data
            if len(document) > self.max_bytes:
                raise FetchError(f"{self.shown} answered with more than {self.max_bytes:,} bytes")
        return bytes(document)

    def _redirect_target(self, location: str) -> SplitResult:
        """The target of a redirect, which must stay on the host and must not leave TLS."""
        current, target = self.url, _parse_url(urljoin(self.url.geturl(), location))
        same_origin = (current.scheme, current.port) == (target.scheme, target.port)
        to_tls = (current.scheme, target.scheme, target.port or 443) == ("http", "https", 443)
        if current.hostname != target.hostname or not (same_origin or to_tls):
            raise FetchError(
                f"{self.shown} redirects to {excerpt(target.netloc)} ({target.scheme}), which is not followed; "
                "use the target address"
            )
        return target


class _PinnedConnection(http.client.HTTPConnection):
    """Connects to one of the checked addresses, without resolving the name again."""

    def __init__(self, host: str, port: int, addresses: list[str], *, tls: bool) -> None:
        super().__init__(host, port)
        self._addresses = addresses
        self._tls = tls
        self._abandoned = False
        # `http.client` clears `sock` as soon as the response has begun.
        self._held: socket.socket | None = None

    def connect(self) -> None:
        self.sock = self._held = self._connect_to_any()
        if self._tls:
            wrapped = ssl.create_default_context().wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
            # The handshake can block as well, so `cut` must know the socket before it starts.
            self.sock = self._held = wrapped
        if self._abandoned:
            self.cut()
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def _connect_to_any(self) -> socket.socket:
        failure: OSError | None = None
        for address in self._addresses:
            try:
                return socket.create_connection((address, self.port), timeout=60)
            except OSError as error:
                failure = error
        raise failure or OSError("the host has no address")

    def cut(self) -> None:
        self._abandoned = True
        if self._held is not None:
            with suppress(OSError):
                self._held.shutdown(socket.SHUT_RDWR)


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
    found: Address = ipaddress.ip_address(address.partition("%")[0])
    inner: list[Address | None] = []
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
