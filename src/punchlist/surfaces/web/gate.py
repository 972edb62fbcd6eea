"""Everything that a request passes before its handler: source, size, token, CSRF, rate; and the headers of responses.

Only the paths of `OPEN` are reachable without a token. `/mcp` authenticates by itself, by the same tokens.
"""

from __future__ import annotations

import re
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from punchlist.errors import StoreError
from punchlist.kernel.events import Role
from punchlist.surfaces.http.auth import HttpRejection, RequestGuard, invalid_token
from punchlist.surfaces.http.body import read_body
from punchlist.surfaces.http.limits import (
    BURST,
    LOGIN_ATTEMPTS,
    LOGIN_SECONDS,
    MAX_BODY,
    READY_REQUESTS_PER_SECOND,
    REQUESTS_PER_SECOND,
)
from punchlist.surfaces.web.context import CONTEXT, RequestContext, WebPrincipal
from punchlist.surfaces.web.logins import is_csrf_token
from punchlist.surfaces.web.problems import problem
from punchlist.surfaces.web.rate_limit import RateLimit

if TYPE_CHECKING:
    from punchlist.surfaces.web.server import WebServer

OPEN: Final = re.compile(r"/healthz|/readyz|/login|/webhooks/[^/]+")
"""Paths that are reachable without a token."""
MCP: Final = "/mcp"
_FAILED: Final = {"login": 403, "webhook": 401}
"""The status of an attempt that failed."""
SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
CSRF_HEADER: Final = "x-csrf-token"
CSRF_FIELD: Final = "csrf"
FORM: Final = "application/x-www-form-urlencoded"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # With `no-referrer`, browsers send forms with `Origin: null`.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""Of every response that has not set them itself."""


class Gate:
    def __init__(self, app: ASGIApp, web: WebServer) -> None:
        self._app = app
        self._web = web
        self._guard = RequestGuard(web.host_names)
        self._rate = RateLimit(REQUESTS_PER_SECOND, BURST)
        self._failures = RateLimit(LOGIN_ATTEMPTS / LOGIN_SECONDS, LOGIN_ATTEMPTS)
        self._ready = RateLimit(READY_REQUESTS_PER_SECOND, 2 * READY_REQUESTS_PER_SECOND)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == MCP:
            await self._app(scope, receive, send)
            return
        send = _with_headers(send, self._web.secure)
        request = Request(scope, receive)
        try:
            receive = await self._admit(request, receive)
        except HttpRejection as error:
            if error.status == 401 and wants_page(request):
                await self._web.login_page(request, 401)(scope, receive, send)
            else:
                await problem(error.status, str(error), headers=error.headers)(scope, receive, send)
        except ClientDisconnect:
            return
        else:
            await self._app(scope, receive, self._count_failures(request, send))

    async def _admit(self, request: Request, receive: Receive) -> Receive:
        self._guard.check(request.headers.items())
        path, unsafe = request.scope["path"], request.method not in SAFE
        principal = None
        if OPEN.fullmatch(path):
            self._check_stranger(request)
        else:
            principal = await self._authenticate(request)
            if not self._rate.allows(principal.token_id):
                raise HttpRejection(429, f"More than {REQUESTS_PER_SECOND} requests per second.", {"Retry-After": "1"})
            setattr(request.state, CONTEXT, RequestContext(self._web, principal))
        if not unsafe:
            return receive
        body = await read_body(request, MAX_BODY)
        if principal is not None:
            _check_change(request, principal, body)
        return _replay(body, receive)

    def _check_stranger(self, request: Request) -> None:
        """Limits for one address, so that no client can keep the others out."""
        if _is_login_attempt(request) and request.headers.get("sec-fetch-dest", "document") != "document":
            # An image or a frame of another site would use up the attempts of this person's address.
            raise HttpRejection(403, "Sec-Fetch-Dest: a login link is opened as a page")
        if (kind := _attempt(request)) and not self._failures.has_left(f"{kind} {self._address(request)}"):
            raise HttpRejection(429, "Too many failed attempts. Wait a minute.", {"Retry-After": "60"})
        if request.scope["path"] == "/readyz" and not self._ready.allows(self._address(request)):
            raise HttpRejection(
                429, f"More than {READY_REQUESTS_PER_SECOND} requests per second.", {"Retry-After": "1"}
            )

    def _count_failures(self, request: Request, send: Send) -> Send:
        if not (kind := _attempt(request)):
            return send

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == _FAILED[kind]:
                self._failures.allows(f"{kind} {self._address(request)}")
            await send(message)

        return counted

    def _address(self, request: Request) -> str:
        """Of the client; of an IPv6 client its network, in which it can have any address."""
        address = request.client.host if request.client else ""
        if self._web.behind_proxy:
            # The last entry is that of the proxy; a client can send the others.
            address = request.headers.get("x-forwarded-for", address).rpartition(",")[2].strip()
        with suppress(ValueError):
            if (parsed := ip_address(address)).version == 6:
                return str(ip_network(f"{parsed}/64", strict=False))
        return address

    async def _authenticate(self, request: Request) -> WebPrincipal:
        """The bearer token if there is one, else the cookie."""
        logins, headers = self._web.logins, request.headers
        try:
            if "authorization" in headers:
                bearer = self._guard.bearer_token(headers.items())
                principal = await self._web.call(logins.find_bearer, bearer)
            else:
                cookie = _cookie(headers, self._web.cookie_name)
                principal = await self._web.call(logins.find_cookie, cookie) if cookie else None
        except StoreError:
            raise HttpRejection(503, "The database is not available.", {"Retry-After": "10"}) from None
        if principal is None:
            raise invalid_token()
        return principal


def _is_login_attempt(request: Request) -> bool:
    return request.scope["path"] == "/login" and (request.method not in SAFE or "code" in request.query_params)


def _attempt(request: Request) -> str:
    """What a request without a token tries to prove; empty if nothing."""
    if _is_login_attempt(request):
        return "login"
    return "webhook" if request.scope["path"].startswith("/webhooks/") else ""


def _check_change(request: Request, principal: WebPrincipal, body: bytes) -> None:
    if principal.role is Role.VIEWER and request.scope["path"] != "/logout":
        raise HttpRejection(403, "A viewer may read and change nothing.")
    if principal.csrf is None:
        return
    # Sites on other ports of this host are other origins, but their requests carry the cookie.
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != request.headers["host"].strip().lower():
        raise HttpRejection(403, "Origin: requests from other sites are not allowed")
    given = request.headers.get(CSRF_HEADER)
    if given is None and _media_type(request) == FORM:
        given = parse_qs(body.decode("utf-8", "replace")).get(CSRF_FIELD, [""])[0]
    if not is_csrf_token(principal, given):
        raise HttpRejection(403, f"{CSRF_HEADER}: is missing or wrong; reload the page")


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _cookie(headers: Headers, name: str) -> str | None:
    found = []
    for value in headers.getlist("cookie"):
        try:
            morsel = SimpleCookie(value).get(name)
        except CookieError:
            return None
        if morsel is not None:
            found.append(morsel.value)
    return found[0] if len(found) == 1 else None


def wants_page(request: Request) -> bool:
    path = request.scope["path"]
    return request.method == "GET" and not path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body again, for the handler; then whatever the client sends."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


def _with_headers(send: Send, secure: bool) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if secure:
                headers.setdefault("Strict-Transport-Security", "max-age=31536000")
        await send(message)

    return with_headers
