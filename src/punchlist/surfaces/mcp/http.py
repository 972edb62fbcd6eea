"""MCP over streamable HTTP, as an ASGI application: `punchlist mcp --http`, or mounted by another server.

A POST brings one message. Its answer is JSON, or a stream of events where more than the answer comes of it: a
question to a person, changes that are listened for. Clients that begin with `initialize` have a session, and fetch
with GET what the server says by itself; those of 2026-07-28 have none, and say in headers what the message is
about, so that whoever stands between can route it; here it is only checked that both say the same.

The services are synchronous and run in threads; `Mailbox` brings what they send back to the event loop.
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

from punchlist.kernel.text import excerpt
from punchlist.surfaces.mcp import elicitation, messages
from punchlist.surfaces.mcp.auth import Authenticator, Principal, Refusal
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.messages import (
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LONGEST_MESSAGE,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Json,
    ProtocolError,
)
from punchlist.surfaces.mcp.notifications import ChangeNotifier
from punchlist.surfaces.mcp.outbox import STILL_HERE_EVENT, Outbox, event
from punchlist.surfaces.mcp.protocol import ClientConnection
from punchlist.surfaces.mcp.sessions import ClientSession, ClientSessions

MOST_STREAMS: Final = 100

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_METHOD: Final = "mcp-method"
_NAME: Final = "mcp-name"
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_BAD_REQUEST: Final = 400
_STATUS: Final = {
    PARSE_ERROR: _BAD_REQUEST,
    INVALID_REQUEST: _BAD_REQUEST,
    INVALID_PARAMS: _BAD_REQUEST,
    HEADER_MISMATCH: _BAD_REQUEST,
    UNSUPPORTED_VERSION: _BAD_REQUEST,
    METHOD_NOT_FOUND: 404,
}
"""How errors of the stateless generation are told in HTTP."""
_NOT_KEPT: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class HttpRejection(Exception):
    """The request is not answered; why is said in its status, and in words."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.headers = headers or {}


class McpEndpoint:
    """The ASGI application of one address. `keys` are the tokens that are taken, and what each opens."""

    def __init__(
        self,
        keys: Mapping[str, Capabilities],
        names: Collection[str] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        patience: float = elicitation.PATIENCE,
    ) -> None:
        self._door = Authenticator(keys, names)
        self._announcers = {token: ChangeNotifier(offer) for token, offer in keys.items()}
        self._sessions = ClientSessions(clock)
        self._clock = clock
        self._patience = patience
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except HttpRejection as error:
            told = messages.failure(None, ProtocolError(INVALID_REQUEST, str(error)))
            response = _json(told, error.status, error.headers)
        except ProtocolError as error:
            response = _json(messages.failure(None, error), _STATUS.get(error.code, _BAD_REQUEST))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        guest = self._door.admit(request.headers.items())
        if isinstance(guest, Refusal):
            raise HttpRejection(guest.status, guest.why, guest.headers)
        for name in (_VERSION, _SESSION, _METHOD, _NAME):
            if len(request.headers.getlist(name)) > 1:
                raise ProtocolError(HEADER_MISMATCH, f"{name}: is there more than once")
        stateless = request.headers.get(_VERSION) in STATELESS_VERSIONS
        if request.method == "POST":
            return await self._post(request, guest)
        if stateless or request.method not in ("GET", "DELETE"):
            allowed = "POST" if stateless else "GET, POST, DELETE"
            raise HttpRejection(405, f"{request.method}: is not answered here", {"Allow": allowed})
        session = self._session(request, guest)
        if request.method == "DELETE":
            await run_in_threadpool(self._sessions.end, session)
            return Response(status_code=204, headers=_NOT_KEPT)
        return self._get(request, session)

    # --- POST: a message -----------------------------------------------------------------------

    async def _post(self, request: Request, guest: Principal) -> Response:
        _check_types(request)
        message = messages.decode(await _body(request))
        meta = messages.envelope(message.get("params")) if isinstance(message, dict) else None
        version = request.headers.get(_VERSION)
        if version in STATELESS_VERSIONS or meta is not None:
            return await self._stateless(request, guest, message, meta)
        if version is not None and version not in HANDSHAKE_VERSIONS:
            raise messages.unsupported(version)
        if _is_request(message) and message["method"] == "initialize" and _SESSION not in request.headers:
            return await self._begin(guest, message)
        session = self._session(request, guest)
        return await self._answer(session.connection, message, {})

    async def _begin(self, guest: Principal, message: Json) -> Response:
        session = ClientSession(guest, self._announcers[guest.token], Outbox(), self._clock(), self._patience)
        answer = await run_in_threadpool(session.connection.answer, message)
        if not isinstance(answer, dict) or "result" not in answer:
            return _json(answer, _BAD_REQUEST)
        self._sessions.begin(session)
        return _json(answer, headers={_SESSION: session.id})

    async def _stateless(self, request: Request, guest: Principal, message: Any, meta: Json | None) -> Response:
        """Each request stands for itself, and its headers say what it says."""
        if not isinstance(message, dict) or "method" not in message:
            raise ProtocolError(INVALID_REQUEST, "The body must be one request or one notification.")
        if "id" not in message:
            return Response(status_code=202)
        try:
            if meta is None:
                raise ProtocolError(INVALID_PARAMS, f"params._meta: must have {VERSION_KEY}")
            _check_headers(request, message, meta)
        except ProtocolError as error:
            return _json(messages.failure(_plain_id(message["id"]), error), _STATUS.get(error.code, _BAD_REQUEST))
        mailbox = Outbox()
        announcer = self._announcers[guest.token]
        return await self._answer(ClientConnection(guest.offer, mailbox.put, announcer), message, _STATUS, mailbox)

    async def _answer(
        self, connection: ClientConnection, message: Any, statuses: Mapping[int, int], own: Outbox | None = None
    ) -> Response:
        """`own` is the mailbox of a connection that is there for this request only."""
        mailbox = own or Outbox()
        answer = await run_in_threadpool(connection.answer, message, mailbox.put)
        if answer is not None:
            error = answer.get("error") if isinstance(answer, dict) else None
            return _json(answer, statuses.get(error["code"], 200) if error else 200)
        if not _is_request(message):
            return Response(status_code=202)
        return self._stream(_until_answered(mailbox, message["id"]), connection.close if own else None)

    # --- GET: what the server says by itself ---------------------------------------------------

    def _get(self, request: Request, session: ClientSession) -> Response:
        if not _accepts(request, "text/event-stream"):
            raise HttpRejection(406, "Accept: must have text/event-stream")
        if session.streaming:
            raise HttpRejection(409, "There is a stream for this session already.")
        session.streaming = True

        def left() -> None:
            session.streaming = False
            session.used_at = self._clock()

        return self._stream(session.mailbox.take(), left)

    def _session(self, request: Request, guest: Principal) -> ClientSession:
        version = request.headers.get(_VERSION)
        if version is not None and version not in HANDSHAKE_VERSIONS:
            raise messages.unsupported(version)
        id = request.headers.get(_SESSION)
        if id is None:
            raise HttpRejection(_BAD_REQUEST, "Mcp-Session-Id: is missing; begin with initialize")
        session = self._sessions.find(id, guest)
        if session is None:
            raise HttpRejection(404, "Mcp-Session-Id: there is no such session; begin anew with initialize")
        return session

    def _stream(self, arriving: AsyncIterator[Json | str], left: Callable[[], object] | None) -> Response:
        def ended() -> None:
            self._streams -= 1
            if left:
                left()

        self._streams += 1
        if self._streams > MOST_STREAMS:
            ended()
            raise HttpRejection(503, f"{MOST_STREAMS} streams are open, which is the limit.", {"Retry-After": "10"})
        return _Stream(arriving, ended)


class _Stream(StreamingResponse):
    """Events until nothing more comes or nobody listens; then `ended`, in any case."""

    def __init__(self, arriving: AsyncIterator[Json | str], ended: Callable[[], object]) -> None:
        super().__init__(_events(arriving), media_type="text/event-stream", headers=_NOT_KEPT)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


async def _events(arriving: AsyncIterator[Json | str]) -> AsyncIterator[bytes]:
    yield STILL_HERE_EVENT
    async for message in arriving:
        yield STILL_HERE_EVENT if isinstance(message, str) else event(message)


async def _until_answered(mailbox: Outbox, request_id: object) -> AsyncIterator[Json | str]:
    async for message in mailbox.take():
        yield message
        if isinstance(message, dict) and "method" not in message and message.get("id") == request_id:
            return


def _is_request(message: Any) -> bool:
    return isinstance(message, dict) and "method" in message and "id" in message


def _plain_id(id: Any) -> str | int | None:
    return id if isinstance(id, (str, int)) and not isinstance(id, bool) else None


def _check_types(request: Request) -> None:
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() != "application/json" or "charset" in rest.lower().replace("charset=utf-8", ""):
        raise HttpRejection(415, "Content-Type: must be application/json")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpRejection(415, "Content-Encoding: is not understood")
    if not (_accepts(request, "application/json") and _accepts(request, "text/event-stream")):
        raise HttpRejection(406, "Accept: must have application/json and text/event-stream")


def _accepts(request: Request, wanted: str) -> bool:
    ranges = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    return any(one in (wanted, "*/*", f"{wanted.partition('/')[0]}/*") for one in ranges)


async def _body(request: Request) -> bytes:
    """What was sent, as far as it is not too much: the rest is not even taken in."""
    too_long = HttpRejection(413, f"A message must be shorter than {LONGEST_MESSAGE:,} bytes.", {"Connection": "close"})
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > LONGEST_MESSAGE:
        raise too_long
    taken = bytearray()
    async for chunk in request.stream():
        taken += chunk
        if len(taken) > LONGEST_MESSAGE:
            raise too_long
    return bytes(taken)


def _check_headers(request: Request, message: Json, meta: Json) -> None:
    """What the headers say must be what the body says: whoever routes by the one must not be told the other."""
    named = _NAMED_BY.get(message["method"]) if isinstance(message["method"], str) else None
    said = {_VERSION: meta[VERSION_KEY], _METHOD: message["method"]}
    if named:
        said[_NAME] = message["params"].get(named)
    for header, value in said.items():
        given = request.headers.get(header)
        if isinstance(value, str) and (given is None or _header_text(given.strip()) != value):
            told = "is missing" if given is None else f"is {excerpt(given)!r}"
            raise ProtocolError(HEADER_MISMATCH, f"{header}: {told}, but the message says {excerpt(value)!r}")


def _header_text(value: str) -> str | None:
    """A header's value, which may be wrapped where it has more than visible ASCII."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _json(message: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(messages.encode(message), status, {**_NOT_KEPT, **(headers or {})}, media_type="application/json")
