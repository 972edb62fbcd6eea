"""Sessions of HTTP clients that begin with `initialize`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import Final

from punchlist.surfaces.mcp.auth import Principal
from punchlist.surfaces.mcp.notifications import ChangeNotifier
from punchlist.surfaces.mcp.outbox import Outbox
from punchlist.surfaces.mcp.protocol import ClientConnection

IDLE_SECONDS: Final = 3600.0
MAX_SESSIONS: Final = 100


class ClientSession:
    def __init__(
        self, principal: Principal, notifier: ChangeNotifier, outbox: Outbox, now: float, answer_timeout: float
    ) -> None:
        self.id = secrets.token_urlsafe(32)
        self.token = principal.token
        self.outbox = outbox
        """Messages that answer no request; read by GET."""
        self.used_at = now
        self.streaming = False
        # The owner of a claim is shown to others: do not reveal the session id.
        client = sha256(self.id.encode()).hexdigest()[:8]
        capabilities = principal.capabilities.for_client(client)
        self.connection = ClientConnection(capabilities, outbox.put, notifier, answer_timeout=answer_timeout)


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
            if session is None or session.token != principal.token:
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
        return not session.streaming and self._clock() - session.used_at > IDLE_SECONDS
