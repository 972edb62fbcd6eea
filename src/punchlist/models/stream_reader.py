"""Watches and bounds the bytes of one response.

The transport's timeouts do not end a reply that never stops, and the client libraries read an error response
in full, however long it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import httpx2

MAX_BYTES: Final = 32_000_000
"""A token takes about a hundred bytes, and no reply has more than 200,000 tokens."""
_COMPRESSION: Final = 32
"""A compressed byte counts as this many."""
_DONE: Final = (b"[DONE]", b'"message_stop"}')
_TAIL: Final = 32
_EVENTS: Final = "text/event-stream"


class ReplyTooLong(Exception):
    """The response is longer than the limit."""


class StreamReader:
    def __init__(self, limit: int = MAX_BYTES) -> None:
        self.limit = limit
        self.size = 0
        self.media_type = ""
        """The media type of a response with status 200."""
        self._tail = b""

    @property
    def too_long(self) -> bool:
        return self.size > self.limit

    @property
    def done(self) -> bool:
        """The server marked the end of the stream. The Responses API has no such mark."""
        return self._tail.rstrip().endswith(_DONE)

    @property
    def not_a_stream(self) -> bool:
        return bool(self.media_type) and self.media_type != _EVENTS

    async def watch(self, response: httpx2.Response) -> None:
        """Response hook of the HTTP client: headers have arrived, the body has not."""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        compressed = response.headers.get("content-encoding", "identity") != "identity"
        if response.status_code == httpx2.codes.OK:
            self.media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        response.stream = _WatchedStream(response.stream, self, _COMPRESSION if compressed else 1)

    def take(self, chunk: bytes, weight: int) -> None:
        self.size += len(chunk) * weight
        self._tail = (self._tail + chunk)[-_TAIL:]
        if self.too_long:
            raise ReplyTooLong


class _WatchedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, reader: StreamReader, weight: int) -> None:
        self._stream = stream
        self._reader = reader
        self._weight = weight

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._reader.take(chunk, self._weight)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
