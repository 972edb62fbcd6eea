"""Messages to an HTTP client: put in by any thread, taken out by the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.jsonrpc import Json

_MAX_MESSAGES: Final = 1_000
"""Above this, the oldest messages are dropped."""
_KEEPALIVE_SECONDS: Final = 15.0
"""A keepalive also detects clients that are gone."""


class Outbox:
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
