"""What comes over the wire for one question: watched, and bounded.

The time limits of the transport do not end a reply that never stops, and the libraries read a refusal
whole, however long it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import httpx2

MAX_BYTES: Final = 32_000_000
"""A token takes some hundred bytes, and no reply has more than 200,000 of them."""
_UNPACKED: Final = 32
"""So much is what is packed taken for."""
_DONE: Final = (b"[DONE]", b'"message_stop"}')
_TAIL: Final = 32
_EVENTS: Final = "text/event-stream"


class ReplyTooLong(Exception):
    """The answer is longer than it may be."""


class StreamReader:
    def __init__(self, most: int = MAX_BYTES) -> None:
        self.most = most
        self.taken = 0
        self.kind = ""
        """The media type of an answer that came with status 200."""
        self._tail = b""

    @property
    def too_much(self) -> bool:
        return self.taken > self.most

    @property
    def done(self) -> bool:
        """The server said that this is all; two wires of three have a word for it."""
        return self._tail.rstrip().endswith(_DONE)

    @property
    def no_stream(self) -> bool:
        return bool(self.kind) and self.kind != _EVENTS

    async def watch(self, response: httpx2.Response) -> None:
        """A hook of the client: the head of the answer has come, its content not yet."""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        packed = response.headers.get("content-encoding", "identity") != "identity"
        if response.status_code == httpx2.codes.OK:
            self.kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        response.stream = _WatchedStream(response.stream, self, _UNPACKED if packed else 1)

    def take(self, chunk: bytes, weight: int) -> None:
        self.taken += len(chunk) * weight
        self._tail = (self._tail + chunk)[-_TAIL:]
        if self.too_much:
            raise ReplyTooLong


class _WatchedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, reading: StreamReader, weight: int) -> None:
        self._stream = stream
        self._reading = reading
        self._weight = weight

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._reading.take(chunk, self._weight)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
