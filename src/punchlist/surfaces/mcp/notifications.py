"""Detects changes of resources, made by any process, and notifies their subscribers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock, Thread
from typing import Final

from punchlist.errors import PunchlistError
from punchlist.surfaces.mcp.capabilities import Capabilities

logger = logging.getLogger(__name__)

_POLL_INTERVAL: Final = 1.0
"""Seconds after which a database that was unavailable is read again."""

Listener = Callable[[str], None]


class ChangeNotifier:
    """One thread watches while there are listeners."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities
        self._lock = Lock()
        self._listeners: dict[str, set[Listener]] = {}
        self._last_seen: dict[str, str] = {}
        self._watching = False

    def add(self, uri: str, listener: Listener) -> None:
        with self._lock:
            if uri not in self._listeners:
                self._has_changed(uri)
            self._listeners.setdefault(uri, set()).add(listener)
            if not self._watching:
                Thread(target=self._watch, daemon=True).start()
                self._watching = True

    def remove(self, uri: str, listener: Listener) -> None:
        with self._lock:
            listeners = self._listeners.get(uri, set())
            listeners.discard(listener)
            if not listeners:
                self._listeners.pop(uri, None)
                self._last_seen.pop(uri, None)

    def _watch(self) -> None:
        """Run until there are no listeners. After an error, the next `add` starts a new thread."""
        try:
            with self._capabilities.watch() as watch:
                while self._notify():
                    watch.wait(_POLL_INTERVAL)
        except PunchlistError:
            # The database cannot be opened; reading a resource reports that.
            self._stop()
        except Exception:
            logger.exception("watching for changes failed")
            self._stop()

    def _stop(self) -> None:
        with self._lock:
            self._watching = False

    def _notify(self) -> bool:
        """Notify the listeners of changed resources; False if there are no listeners."""
        with self._lock:
            self._watching = watching = bool(self._listeners)
            changed = [(uri, list(all)) for uri, all in self._listeners.items() if self._has_changed(uri)]
        for uri, listeners in changed:
            for listener in listeners:
                try:
                    listener(uri)
                except Exception:
                    # The client may be gone; the others are still notified.
                    logger.exception("a client could not be notified of a change")
        return watching

    def _has_changed(self, uri: str) -> bool:
        try:
            text = self._capabilities.read_resource(uri)
        except PunchlistError:
            return False
        previous = self._last_seen.setdefault(uri, text)
        self._last_seen[uri] = text
        return previous != text
