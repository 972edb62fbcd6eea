"""Telling a client that a list it watches has changed, whichever process changed it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Final

from punchlist.errors import PunchlistError
from punchlist.surfaces.mcp.offer import Offer

_AT_MOST: Final = 1.0
"""Seconds after which a database that was away is looked at again."""


class Announcer:
    def __init__(self, offer: Offer, announce: Callable[[str], None]) -> None:
        self._offer = offer
        self._announce = announce
        self._seen: dict[str, str] | None = None

    def start(self) -> None:
        """From now on; whoever subscribed a moment ago misses nothing."""
        if self._seen is None:
            self._seen = {}
            self._look()
            Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        with self._offer.watch() as watch:
            while True:
                self._look()
                watch.wait(_AT_MOST)

    def _look(self) -> None:
        assert self._seen is not None
        for resource in self._offer.resources():
            try:
                text = self._offer.read(resource.uri)
            except PunchlistError:
                # Whoever asks for the list is told; here there is only nothing new.
                continue
            if self._seen.get(resource.uri, text) != text:
                self._announce(resource.uri)
            self._seen[resource.uri] = text
