"""MCP over streamable HTTP as an ASGI application, for `punchlist mcp --http` or mounted in another server.

A POST carries one message. The response is JSON, or an event stream if more follows: a question to the person, or
changes of resources. Clients that begin with `initialize` have a session and read other messages with GET. Clients of
2026-07-28 have none and repeat the message's method and name in headers, for routing by proxies; the endpoint checks
that headers and body agree.

Services are synchronous and run in threads; `Outbox` moves their messages to the event loop.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from punchlist.errors import StoreError
from punchlist.kernel.text import excerpt
from punchlist.surfaces.http.auth import HttpRejection, RequestGuard, invalid_token
from punchlist.surfaces.http.body import read_body
from punchlist.surfaces.http.limits import MAX_STREAMS
from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.jsonrpc import (
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_MESSAGE_SIZE,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Json,
    ProtocolError,
)
from punchlist.surfaces.mcp.principals import NamedTokens, Principal, Principals
from punchlist.surfaces.mcp.protocol import ClientConnection
from punchlist.surfaces.mcp.sessions import KEEPALIVE_EVENT, ClientSession, ClientSessions, Outbox, sse_event

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_METHOD: Final = "mcp-method"
_NAME: Final = "mcp-name"
_NAME_PARAMS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_BAD_REQUEST: Final = 400
_STATUS: Final = {
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, HEADER_MISMATCH, UNSUPPORTED_VERSION), _BAD_REQUEST),
    METHOD_NOT_FOUND: 404,
}
"""HTTP status of the errors of stateless requests."""
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class McpEndpoint:
    """The ASGI application. Each of the `tokens`, and each named token, has its own capabilities."""

    def __init__(
        self,
        tokens: Mapping[str, Capabilities],
        host_names: Collection[str] = (),
        *,
        named: NamedTokens | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guard = RequestGuard(host_names)
        self._principals = Principals(tokens, named)
        self._sessions = ClientSessions(clock)
        self._clock = clock
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except HttpRejection as error:
            content = jsonrpc.error_response(None, ProtocolError(INVALID_REQUEST, str(error)))
            response = _json(content, error.status, error.headers)
        except ProtocolError as error:
            response = _json(jsonrpc.error_response(None, error), _STATUS.get(error.code, _BAD_REQUEST))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        principal = await self._authenticate(request)
        for name in (_VERSION, _SESSION, _METHOD, _NAME):
            if len(request.headers.getlist(name)) > 1:
                raise ProtocolError(HEADER_MISMATCH, f"{name}: occurs more than once")
        stateless = request.headers.get(_VERSION) in STATELESS_VERSIONS
        if request.method == "POST":
            return await self._post(request, principal)
        if stateless or request.method not in ("GET", "DELETE"):
            allowed = "POST" if stateless else "GET, POST, DELETE"
            raise HttpRejection(405, f"{request.method}: method not allowed", {"Allow": allowed})
        session = self._session(request, principal)
        if request.method == "DELETE":
            await run_in_threadpool(self._sessions.end, session)
            return Response(status_code=204, headers=_HEADERS)
        return self._get(request, session)

    async def _authenticate(self, request: Request) -> Principal:
        token = self._guard.bearer_token(request.headers.items())
        principal = self._principals.find_started(token)
        if principal is None:
            try:
                principal = await run_in_threadpool(self._principals.find_named, token)
            except StoreError:
                raise HttpRejection(503, "The database is not available.", {"Retry-After": "10"}) from None
        if principal is None:
            raise invalid_token()
        return principal

    # --- POST: one message ---------------------------------------------------------------------

    async def _post(self, request: Request, principal: Principal) -> Response:
        _check_types(request)
        message = jsonrpc.decode(await read_body(request, MAX_MESSAGE_SIZE))
        meta = jsonrpc.envelope(message.get("params")) if isinstance(message, dict) else None
        version = request.headers.get(_VERSION)
        if version in STATELESS_VERSIONS or meta is not None:
            return await self._stateless(request, principal, message, meta)
        if version is not None and version not in HANDSHAKE_VERSIONS:
            raise jsonrpc.unsupported_version(version)
        if _is_request(message) and message["method"] == "initialize" and _SESSION not in request.headers:
            return await self._begin_session(principal, message)
        session = self._session(request, principal)
        return await self._answer(principal, session.connection, message, {})

    async def _begin_session(self, principal: Principal, message: Json) -> Response:
        session = ClientSession(principal, Outbox(), self._clock())
        answer = await run_in_threadpool(session.connection.answer, message)
        if not isinstance(answer, dict) or "result" not in answer:
            return _json(answer, _BAD_REQUEST)
        self._sessions.add(session)
        return _json(answer, headers={_SESSION: session.id})

    async def _stateless(self, request: Request, principal: Principal, message: Any, meta: Json | None) -> Response:
        if not isinstance(message, dict) or "method" not in message:
            raise ProtocolError(INVALID_REQUEST, "The body must be one request or one notification.")
        if "id" not in message:
            return Response(status_code=202)
        try:
            if meta is None:
                raise ProtocolError(INVALID_PARAMS, f"params._meta: must have {VERSION_KEY}")
            _check_headers(request, message, meta)
        except ProtocolError as error:
            id = message["id"]
            valid_id = id if isinstance(id, (str, int)) and not isinstance(id, bool) else None
            return _json(jsonrpc.error_response(valid_id, error), _STATUS.get(error.code, _BAD_REQUEST))
        outbox = Outbox()
        connection = ClientConnection(principal.capabilities, outbox.put, principal.notifier)
        return await self._answer(principal, connection, message, _STATUS, outbox)

    async def _answer(
        self,
        principal: Principal,
        connection: ClientConnection,
        message: Any,
        statuses: Mapping[int, int],
        own_outbox: Outbox | None = None,
    ) -> Response:
        """`own_outbox` belongs to a connection that serves only this request."""
        outbox = own_outbox or Outbox()
        answer = await run_in_threadpool(connection.answer, message, outbox.put)
        if answer is not None:
            error = answer.get("error") if isinstance(answer, dict) else None
            return _json(answer, statuses.get(error["code"], 200) if error else 200)
        if not _is_request(message):
            return Response(status_code=202)
        messages = _until_answered(outbox, message["id"])
        return self._stream(principal, messages, connection.close if own_outbox else None)

    # --- GET: messages that answer no request --------------------------------------------------

    def _get(self, request: Request, session: ClientSession) -> Response:
        if not _accepts(request, "text/event-stream"):
            raise HttpRejection(406, "Accept: must include text/event-stream")
        if session.streaming:
            raise HttpRejection(409, "This session already has an open stream.")
        session.streaming = True

        def on_end() -> None:
            session.streaming = False
            session.used_at = self._clock()

        return self._stream(session.principal, session.outbox.messages(), on_end)

    def _session(self, request: Request, principal: Principal) -> ClientSession:
        version = request.headers.get(_VERSION)
        if version is not None and version not in HANDSHAKE_VERSIONS:
            raise jsonrpc.unsupported_version(version)
        id = request.headers.get(_SESSION)
        if id is None:
            raise HttpRejection(_BAD_REQUEST, "Mcp-Session-Id: is missing; begin with initialize")
        session = self._sessions.find(id, principal)
        if session is None:
            raise HttpRejection(404, "Mcp-Session-Id: unknown session; begin again with initialize")
        return session

    def _stream(
        self, principal: Principal, messages: AsyncIterator[Json | str], on_end: Callable[[], object] | None
    ) -> Response:
        def ended() -> None:
            self._streams -= 1
            if on_end:
                on_end()

        self._streams += 1
        if self._streams > MAX_STREAMS:
            ended()
            raise HttpRejection(503, f"Limit of {MAX_STREAMS} open streams reached.", {"Retry-After": "10"})
        return _EventStream(_while_valid(principal, messages), ended)


class _EventStream(StreamingResponse):
    """Calls `on_end` when the stream ends or the client disconnects."""

    def __init__(self, messages: AsyncIterator[Json | str], on_end: Callable[[], object]) -> None:
        super().__init__(_events(messages), media_type="text/event-stream", headers=_HEADERS)
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


async def _events(messages: AsyncIterator[Json | str]) -> AsyncIterator[bytes]:
    yield KEEPALIVE_EVENT
    async for message in messages:
        yield KEEPALIVE_EVENT if isinstance(message, str) else sse_event(message)


async def _while_valid(principal: Principal, messages: AsyncIterator[Json | str]) -> AsyncIterator[Json | str]:
    """Ends when the token has expired or was revoked; checked before each message and each keepalive."""
    async for message in messages:
        if principal.is_valid is not None and not await run_in_threadpool(principal.is_valid):
            return
        yield message


async def _until_answered(outbox: Outbox, request_id: object) -> AsyncIterator[Json | str]:
    async for message in outbox.messages():
        yield message
        if isinstance(message, dict) and "method" not in message and message.get("id") == request_id:
            return


def _is_request(message: Any) -> bool:
    return isinstance(message, dict) and "method" in message and "id" in message


def _check_types(request: Request) -> None:
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() != "application/json" or "charset" in rest.lower().replace("charset=utf-8", ""):
        raise HttpRejection(415, "Content-Type: must be application/json")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpRejection(415, "Content-Encoding: not supported")
    if not (_accepts(request, "application/json") and _accepts(request, "text/event-stream")):
        raise HttpRejection(406, "Accept: must include application/json and text/event-stream")


def _accepts(request: Request, media_type: str) -> bool:
    ranges = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    return any(entry in (media_type, "*/*", f"{media_type.partition('/')[0]}/*") for entry in ranges)


def _check_headers(request: Request, message: Json, meta: Json) -> None:
    """The headers must repeat the body: a proxy may route by them."""
    name_param = _NAME_PARAMS.get(message["method"]) if isinstance(message["method"], str) else None
    expected = {_VERSION: meta[VERSION_KEY], _METHOD: message["method"]}
    if name_param:
        expected[_NAME] = message["params"].get(name_param)
    for header, value in expected.items():
        given = request.headers.get(header)
        if isinstance(value, str) and (given is None or _header_text(given.strip()) != value):
            problem = "is missing" if given is None else f"is {excerpt(given)!r}"
            raise ProtocolError(HEADER_MISMATCH, f"{header}: {problem}, but the message has {excerpt(value)!r}")


def _header_text(value: str) -> str | None:
    """Decode a header's value, which is wrapped in base64 if it is not visible ASCII."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _json(message: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(jsonrpc.encode(message), status, {**_HEADERS, **(headers or {})}, media_type="application/json")
