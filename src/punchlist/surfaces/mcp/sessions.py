"""The sessions of clients that begin with `initialize` over HTTP."""

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
MOST: Final = 100


class ClientSession:
    def __init__(
        self, guest: Principal, announcer: ChangeNotifier, mailbox: Outbox, now: float, patience: float
    ) -> None:
        self.id = secrets.token_urlsafe(32)
        self.token = guest.token
        self.mailbox = mailbox
        """What the server says by itself; read by whoever opens the stream for it."""
        self.used_at = now
        self.streaming = False
        # Who holds a claim is shown to others, so it does not name the session itself.
        place = sha256(self.id.encode()).hexdigest()[:8]
        self.connection = ClientConnection(guest.offer.at(place), mailbox.put, announcer, patience=patience)


class ClientSessions:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._guard = Lock()
        self._sessions: dict[str, ClientSession] = {}

    def begin(self, session: ClientSession) -> None:
        """Where there are too many, the one that was used least lately makes room."""
        with self._guard:
            self._sessions[session.id] = session
            ended = [one for one in self._sessions.values() if self._expired(one)]
            by_use = sorted((one for one in self._sessions.values() if one is not session), key=lambda one: one.used_at)
            ended += by_use[: max(0, len(self._sessions) - MOST)]
        for one in ended:
            self.end(one)

    def find(self, id: str, guest: Principal) -> ClientSession | None:
        """A session belongs to the token that began it; for any other it is not there."""
        with self._guard:
            session = self._sessions.get(id)
            if session is None or session.token != guest.token:
                return None
            if not self._expired(session):
                session.used_at = self._clock()
                return session
        self.end(session)
        return None

    def end(self, session: ClientSession) -> None:
        with self._guard:
            self._sessions.pop(session.id, None)
        session.connection.close()
        session.mailbox.put(None)

    def _expired(self, session: ClientSession) -> bool:
        return not session.streaming and self._clock() - session.used_at > IDLE_SECONDS
