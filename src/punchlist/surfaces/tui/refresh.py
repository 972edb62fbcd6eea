"""Loads what a screen shows in a thread, one load at a time.

Requests during a load cause one more load afterwards, however many they are: a burst of changes costs two loads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from textual.screen import Screen

from punchlist.errors import PunchlistError

T = TypeVar("T")
RETRY_SECONDS = 2.0
"""After a failure, for example while the database cannot be reached."""


class Refresh(Generic[T]):
    def __init__(
        self, screen: Screen[None], load: Callable[[], T], show: Callable[[T], None], fail: Callable[[str], None]
    ) -> None:
        self._screen = screen
        self._load = load
        self._show = show
        self._fail = fail
        self._busy = False
        self._again = False

    def request(self) -> None:
        if self._busy:
            self._again = True
        else:
            self._busy = True
            # The function and not its coroutine, which an application that ends would leave unawaited. mypy cannot
            # choose between the kinds of functions that a worker takes.
            self._screen.run_worker(self._run, name="refresh", exit_on_error=True)  # type: ignore[arg-type]

    async def _run(self) -> None:
        try:
            while True:
                self._again = False
                try:
                    value = await asyncio.to_thread(self._load)
                except PunchlistError as error:
                    if not self._screen.is_running:
                        break
                    self._fail(str(error))
                    self._screen.set_timer(RETRY_SECONDS, self.request)
                else:
                    if not self._screen.is_running:
                        break
                    self._show(value)
                if not self._again:
                    break
        finally:
            self._busy = False
