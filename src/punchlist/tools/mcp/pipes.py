"""The pipes of an MCP server process, and the lines that it prints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

KEPT_OUTPUT_BYTES: Final = 4096


class ProcessPipes(asyncio.SubprocessProtocol):
    """A protocol for the process. `asyncio.subprocess` would report an exit only when all pipes are closed."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self.stdout = asyncio.StreamReader(limit=1024 * 1024)
        self.stderr = b""
        self.exited = asyncio.Event()
        self.released = asyncio.Event()
        self.stderr_ended = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._on_end = on_end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._process = cast("asyncio.SubprocessTransport", transport)
        output = self._process.get_pipe_transport(1)
        assert output is not None
        self.stdout.set_transport(output)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self.stdout.feed_data(data)
        else:
            self.stderr = (self.stderr + data)[-KEPT_OUTPUT_BYTES:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 2:
            self.stderr_ended.set()
            return
        if fd == 1:
            self.stdout.feed_eof()
        self._writable.set()
        self._on_end()

    def process_exited(self) -> None:
        self.exited.set()
        self._on_end()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.released.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def send(self, data: bytes) -> None:
        stdin = cast("asyncio.WriteTransport", self._process.get_pipe_transport(0))
        if stdin.is_closing():
            raise BrokenPipeError
        stdin.write(data)
        await self._writable.wait()


class LineBuffer:
    """Splits a byte stream into lines without copying a long line repeatedly."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.unfinished = 0

    def feed(self, data: bytes) -> list[bytes]:
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            lines.append(b"".join((*self._parts, end)))
            self._parts.clear()
            self.unfinished = 0
        if rest:
            self._parts.append(rest)
            self.unfinished += len(rest)
        return lines
