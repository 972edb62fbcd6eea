"""Asking a web address for a document, and no other machine than one that a stranger's file may ask.

The name is looked up once, every address that comes is judged, and the connection is made to one that
was judged: a name that means something else the second time leads nowhere. Proxies are not used, since
behind one nobody knows what is asked. Redirects stay with the host, and each is judged anew.
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
_MOST_REDIRECTS: Final = 3
_PORTS: Final = {"http": 80, "https": 443}
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CHUNK: Final = 65_536
# IPv4 addresses are also written inside of these.
_NAT64: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class FetchError(Exception):
    """Why, in words that hold no secret."""


def fetch(
    url: str,
    *,
    headers: Mapping[str, str],
    environment: Mapping[str, str],
    seconds: float,
    most: int,
    allow_private: bool,
) -> bytes:
    """The document at an address, at most `most` bytes of it, in at most `seconds`."""
    request = _Request(_checked(url), _filled(headers, environment), most, allow_private)
    # In a thread that can be left behind: looking up a name takes as long as it likes.
    thread = threading.Thread(target=request.see_through, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        request.abandon()
        raise FetchError(f"{request.shown} took longer than its limit of {seconds:g} s")
    if request.failure is not None:
        raise request.failure
    return request.document


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise FetchError(f"{excerpt(url)!r} is no web address") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise FetchError(f"{excerpt(url)!r} is no web address; it begins with https:// or http://")
    if "@" in parts.netloc:
        raise FetchError("the address holds a name or password; send them with `headers` and a ${VARIABLE}")
    if port == 0 or re.search(r"[\x00-\x20\x7f]", url):
        raise FetchError(f"{excerpt(url)!r} is no web address")
    return parts


def _filled(headers: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
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
    most: int
    allow_private: bool
    document: bytes = b""
    failure: FetchError | None = None
    connection: _PinnedConnection | None = None
    response: http.client.HTTPResponse | None = None

    @property
    def shown(self) -> str:
        """Without what follows a question mark, which may be a key."""
        return excerpt(f"{self.url.scheme}://{self.url.netloc}{self.url.path}", 200)

    def see_through(self) -> None:
        try:
            self.document = self._follow()
        except FetchError as failure:
            self.failure = failure
        except (OSError, http.client.HTTPException) as error:
            self.failure = FetchError(f"{self.shown} cannot be reached: {_reason(error)}")
        except ValueError:
            # Such as a header with a line break; what it holds is not told.
            self.failure = FetchError(f"{self.shown} cannot be asked: its path or a header holds what cannot be sent")
        finally:
            self._let_go()

    def abandon(self) -> None:
        """From another thread: whoever reads gets no more."""
        if self.connection is not None:
            self.connection.cut()

    def _let_go(self) -> None:
        if self.response is not None:
            self.response.close()
        if self.connection is not None:
            self.connection.close()

    def _follow(self) -> bytes:
        for _ in range(_MOST_REDIRECTS + 1):
            response = self._ask()
            if response.status in _REDIRECTS and (location := response.getheader("Location")):
                self.url = self._next(location)
                continue
            if response.status != http.client.OK:
                raise FetchError(f"{self.shown} answered {response.status} {excerpt(response.reason or '', 60)}")
            return self._read(response)
        raise FetchError(f"{self.shown} redirects more than {_MOST_REDIRECTS} times")

    def _ask(self) -> http.client.HTTPResponse:
        self._let_go()
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
            if len(document) > self.most:
                raise FetchError(f"{self.shown} answered with more than {self.most:,} bytes")
        return bytes(document)

    def _next(self, location: str) -> SplitResult:
        """Where a redirect leads, if that is the same host, and not in the clear what was encrypted."""
        here, there = self.url, _checked(urljoin(self.url.geturl(), location))
        same_place = (here.scheme, here.port) == (there.scheme, there.port)
        to_tls = (here.scheme, there.scheme, there.port or 443) == ("http", "https", 443)
        if here.hostname != there.hostname or not (same_place or to_tls):
            raise FetchError(
                f"{self.shown} redirects to {excerpt(there.netloc)} ({there.scheme}), which is not followed; "
                "write the address that is meant"
            )
        return there


class _PinnedConnection(http.client.HTTPConnection):
    """To one of some addresses, whatever the name means by now."""

    def __init__(self, host: str, port: int, addresses: list[str], *, tls: bool) -> None:
        super().__init__(host, port)
        self._addresses = addresses
        self._tls = tls
        self._abandoned = False
        # `sock` is forgotten as soon as the answer has begun.
        self._held: socket.socket | None = None

    def connect(self) -> None:
        self.sock = self._held = self._reach()
        if self._tls:
            wrapped = ssl.create_default_context().wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
            # The handshake can take for ever, too: what is cut must be known before.
            self.sock = self._held = wrapped
        if self._abandoned:
            self.cut()
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def _reach(self) -> socket.socket:
        failure: OSError | None = None
        for address in self._addresses:
            try:
                return socket.create_connection((address, self.port), timeout=60)
            except OSError as error:
                failure = error
        raise failure or OSError("it has no address")

    def cut(self) -> None:
        self._abandoned = True
        if self._held is not None:
            with suppress(OSError):
                self._held.shutdown(socket.SHUT_RDWR)


def _addresses(host: str, port: int, allow_private: bool) -> list[str]:
    """Those of a host, if all of them may be asked."""
    try:
        found: list[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(f"the host {excerpt(host)!r} is not known: {_reason(error)}") from None
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    for address in addresses:
        if not allow_private and not is_public(address):
            raise FetchError(
                f"the host {excerpt(host)!r} is {address}, an address of this machine or of a private network, "
                "which is not asked unless a person allows it with PUNCHLIST_PRIVATE_ADDRESSES=allow"
            )
    return addresses


def is_public(address: str) -> bool:
    """Whether an address belongs to the open internet, also by any other address written inside of it."""
    found: Address = ipaddress.ip_address(address.partition("%")[0])
    inner: list[Address | None] = []
    if isinstance(found, ipaddress.IPv6Address):
        if found.is_site_local:
            return False
        inner = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if any(found in network for network in _NAT64):
            inner.append(ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF))
        if inner_found := [one for one in inner if one is not None]:
            return all(is_public(str(one)) for one in inner_found)
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return excerpt(told or type(error).__name__, 200)
