"""Telling clients that a list they follow has changed, whichever process changed it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock, Thread
from typing import Final

from punchlist.errors import PunchlistError
from punchlist.surfaces.mcp.capabilities import Capabilities

logger = logging.getLogger(__name__)

_AT_MOST: Final = 1.0
"""Seconds after which a database that was away is looked at again."""

Tell = Callable[[str], None]


class ChangeNotifier:
    """Looks as long as somebody follows something: one thread, however many follow."""

    def __init__(self, offer: Capabilities) -> None:
        self._offer = offer
        self._guard = Lock()
        self._followers: dict[str, set[Tell]] = {}
        self._seen: dict[str, str] = {}
        self._looking = False

    def follow(self, uri: str, tell: Tell) -> None:
        """From now on; whoever follows since a moment ago misses nothing."""
        with self._guard:
            if uri not in self._followers:
                self._look_at(uri)
            self._followers.setdefault(uri, set()).add(tell)
            if not self._looking:
                Thread(target=self._watch, daemon=True).start()
                self._looking = True

    def leave(self, uri: str, tell: Tell) -> None:
        with self._guard:
            followers = self._followers.get(uri, set())
            followers.discard(tell)
            if not followers:
                self._followers.pop(uri, None)
                self._seen.pop(uri, None)

    def _watch(self) -> None:
        """Until nobody follows any more. Whatever else ends it, whoever follows next has it tried again."""
        try:
            with self._offer.watch() as watch:
                while self._look():
                    watch.wait(_AT_MOST)
        except PunchlistError:
            # There is no database to watch, and whoever asks for a list is told so.
            self._end()
        except Exception:
            logger.exception("changes cannot be watched")
            self._end()

    def _end(self) -> None:
        with self._guard:
            self._looking = False

    def _look(self) -> bool:
        """Whether there is anybody left to look for."""
        with self._guard:
            self._looking = looking = bool(self._followers)
            changed = [(uri, list(tells)) for uri, tells in self._followers.items() if self._look_at(uri)]
        for uri, tells in changed:
            for tell in tells:
                _told(tell, uri)
        return looking

    def _look_at(self, uri: str) -> bool:
        """Whether it is another than at the last look."""
        try:
            text = self._offer.read(uri)
        except PunchlistError:
            # Whoever asks for the list is told; here there is only nothing new.
            return False
        before = self._seen.setdefault(uri, text)
        self._seen[uri] = text
        return before != text


def _told(tell: Tell, uri: str) -> None:
    """A client that cannot be told, perhaps since it is gone, keeps nobody else from being told."""
    try:
        tell(uri)
    except Exception:
        logger.exception("a client could not be told of a change")
