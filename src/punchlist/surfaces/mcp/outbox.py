"""Messages on their way to a client: put in by any thread, taken out by the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from punchlist.surfaces.mcp import messages
from punchlist.surfaces.mcp.messages import Json

MOST_KEPT: Final = 1_000
"""Of those that nobody fetches, the oldest are dropped."""
STILL_HERE: Final = 15.0
"""Seconds after which a stream says that it is still there; so a client that is gone is noticed."""


class Outbox:
    def __init__(self) -> None:
        """Made on the event loop that takes out."""
        self._loop = asyncio.get_running_loop()
        self._messages: deque[Json | None] = deque(maxlen=MOST_KEPT)
        self._arrived = asyncio.Event()

    def put(self, message: Json | None) -> None:
        self._messages.append(message)
        with suppress(RuntimeError):  # The loop is closed, and the server is ending.
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def take(self) -> AsyncIterator[Json | str]:
        """What arrives until nothing more will come; "" when nothing came for a while."""
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
                await asyncio.wait_for(self._arrived.wait(), STILL_HERE)
            except TimeoutError:
                yield ""


def event(message: Json) -> bytes:
    """A message as server-sent events have it. ASCII JSON has no line breaks."""
    return b"event: message\ndata: " + messages.encode(message) + b"\n\n"


STILL_HERE_EVENT: Final = b": still here\n\n"
