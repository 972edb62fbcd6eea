"""Sessions of HTTP clients that begin with `initialize`, and the messages that clients are sent."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from hashlib import sha256
from threading import Lock
from typing import Final

from punchlist.surfaces.http.limits import MAX_SESSIONS, SESSION_IDLE_SECONDS
from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.jsonrpc import Json
from punchlist.surfaces.mcp.principals import Principal
from punchlist.surfaces.mcp.protocol import ClientConnection

_MAX_MESSAGES: Final = 1_000
"""Above this, the oldest messages are dropped."""
_KEEPALIVE_SECONDS: Final = 15.0
"""A keepalive also detects clients that are gone."""


class Outbox:
    """Messages to a client: put in by any thread, taken out by the event loop."""

    def __init__(self) -> None:
        """Must be called on the event loop that takes the messages out."""
        self._loop = asyncio.get_running_loop()
        self._messages: deque[Json | None] = deque(maxlen=_MAX_MESSAGES)
        self._arrived = asyncio.Event()

    def put(self, message: Json | None) -> None:
        """None ends the stream."""
        self._messages.append(message)
        with suppress(RuntimeError):  # The loop is closed: the server is shutting down.
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def messages(self) -> AsyncIterator[Json | str]:
        """Messages until the stream ends; "" when a keepalive is due."""
        while True:
            while self._messages:
                message = self._messages.popleft()
                if message is None:
                    return
                yield message
            self._arrived.clear()
            if self._messages:
                continue
            try:
                await asyncio.wait_for(self._arrived.wait(), _KEEPALIVE_SECONDS)
            except TimeoutError:
                yield ""


def sse_event(message: Json) -> bytes:
    """A message as a server-sent event. ASCII JSON has no line breaks."""
    return b"event: message\ndata: " + jsonrpc.encode(message) + b"\n\n"


KEEPALIVE_EVENT: Final = b": keepalive\n\n"


class ClientSession:
    def __init__(self, principal: Principal, outbox: Outbox, now: float) -> None:
        self.id = secrets.token_urlsafe(32)
        self.principal = principal
        self.outbox = outbox
        """Messages that answer no request; read by GET."""
        self.used_at = now
        self.streaming = False
        # The owner of a claim is shown to others: do not reveal the session id.
        client = sha256(self.id.encode()).hexdigest()[:8]
        capabilities = principal.capabilities.for_client(client)
        self.connection = ClientConnection(capabilities, outbox.put, principal.notifier)


class ClientSessions:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._sessions: dict[str, ClientSession] = {}

    def add(self, session: ClientSession) -> None:
        """End expired sessions and, above the limit, those unused for the longest time."""
        with self._lock:
            self._sessions[session.id] = session
            ended = [other for other in self._sessions.values() if self._is_expired(other)]
            others = [other for other in self._sessions.values() if other is not session]
            others.sort(key=lambda other: other.used_at)
            ended += others[: max(0, len(self._sessions) - MAX_SESSIONS)]
        for other in ended:
            self.end(other)

    def find(self, id: str, principal: Principal) -> ClientSession | None:
        """A session can only be found with the token that began it."""
        with self._lock:
            session = self._sessions.get(id)
            if session is None or session.principal.id != principal.id:
                return None
            if not self._is_expired(session):
                session.used_at = self._clock()
                return session
        self.end(session)
        return None

    def end(self, session: ClientSession) -> None:
        with self._lock:
            self._sessions.pop(session.id, None)
        session.connection.close()
        session.outbox.put(None)

    def _is_expired(self, session: ClientSession) -> bool:
        return not session.streaming and self._clock() - session.used_at > SESSION_IDLE_SECONDS
