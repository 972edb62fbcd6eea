"""The stdio transport: an MCP server process, one message per line.

The SDK has such a transport. This one differs in failures: the SDK does not report how a process ended,
leaves the children of a process that exited, takes four seconds to end a stubborn process, accepts lines of
any length, and prints stray output of the server to the terminal.

The connection is over when the process exits (even if a child still holds the pipes), when it closes its
standard input or output, or when its output cannot be MCP. Then `over` is set, and the owner of the
connection leaves the context, which ends the process group. A descendant in a session of its own survives.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

from punchlist.kernel import orphans
from punchlist.kernel.text import excerpt, visible_block
from punchlist.tools.mcp.settings import ServerSecrets

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
_MAX_STRAY_BYTES: Final = 1024 * 1024
_STRAY_SHOWN: Final = 200
KEPT_OUTPUT_BYTES: Final = 4096
_STDERR_LINES: Final = 3
_STDERR_SHOWN: Final = 600

# Room for the notifications of cancelled calls, which must not wait for a server that does not read.
_QUEUED_MESSAGES: Final = 64

_CLOSE_GRACE: Final = 0.3
_TERM_GRACE: Final = 0.5
_REAP_TIMEOUT: Final = 2.0
_DRAIN_TIMEOUT: Final = 0.5
_GROUP_POLL: Final = 0.01
_KILL: Final = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


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


class ProcessTransport:
    """The transport of one `mcp.Client` connection. Entered once."""

    def __init__(self, command: tuple[str, ...], env: dict[str, str], cwd: Path | None, over: asyncio.Event) -> None:
        self._command = command
        self._env = env
        self._cwd = cwd
        self._over = over
        self._pipes = ProcessPipes(self._on_end)
        self._stray = b""
        self._stray_size = 0
        self._messages = 0
        self.fault = ""
        self._how = ""
        self._ending = False
        self.left = False
        """The process ended the connection, not this side."""

    async def __aenter__(self) -> Streams:
        import anyio

        loop = asyncio.get_running_loop()
        with orphans.starting() as add:
            transport, _ = await loop.subprocess_exec(
                lambda: self._pipes, *self._command, env=self._env, cwd=self._cwd, start_new_session=True
            )
            add(transport.get_pid())
        self._process = transport
        to_us, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        outgoing, from_us = anyio.create_memory_object_stream["SessionMessage"](_QUEUED_MESSAGES)
        self._streams: list[Any] = [to_us, incoming, outgoing, from_us]
        self._tasks = [asyncio.create_task(self._read(to_us)), asyncio.create_task(self._write(from_us))]
        return incoming, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import anyio

        self._ending = True
        with anyio.CancelScope(shield=True):
            try:
                if self.left:
                    await self.end()
                await self._end_group()
            finally:
                # Cancelled or not, the next line ends every process of the group.
                self._signal(_KILL)
                await self._release()

    async def _release(self) -> None:
        for task in self._tasks:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAP_TIMEOUT):
                await self._pipes.exited.wait()
        self._process.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAP_TIMEOUT):
                await self._pipes.released.wait()
        if self._pipes.exited.is_set():
            orphans.forget(self._process.get_pid())
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.close()

    def _on_end(self) -> None:
        self.left = self.left or not self._ending
        self._over.set()

    async def end(self) -> str:
        """How the process ended. Exit and end of output are reported in any order."""
        if not self._how:
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_TIMEOUT):
                    await self._pipes.exited.wait()
                    await self._pipes.stderr_ended.wait()
            await self._drain()
            self._how = self.fault or _exit(self._process.get_returncode())
        return self._how

    async def _drain(self) -> None:
        """Its last answer can still be in the pipe. A child that holds the pipe open sends nothing more."""
        reader, before = self._tasks[:1], -1
        while not reader[0].done() and self._messages != before:
            before = self._messages
            await asyncio.wait(reader, timeout=_DRAIN_TIMEOUT)

    def evidence(self, secrets: ServerSecrets) -> str:
        """The output of the server that can explain a failure."""
        shown = ""
        # Redacted before it is shortened: half of a secret would not be recognized.
        if stray := secrets.hide(_text(self._stray)):
            shown += f"\nIts standard output, where only MCP messages are allowed: {excerpt(stray, _STRAY_SHOWN)}"
        if lines := secrets.hide(_text(self._pipes.stderr)).strip().splitlines()[-_STDERR_LINES:]:
            shown += "\nThe end of its standard error:\n" + visible_block("\n".join(lines)[-_STDERR_SHOWN:])
        return shown

    async def _read(self, to_us: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        lines = LineBuffer()
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError), to_us:
            while data := await self._pipes.stdout.read(256 * 1024):
                for line in lines.feed(data):
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        self._note_stray(line)
                    else:
                        self._stray_size = 0
                        self._messages += 1
                        await to_us.send(SessionMessage(message))
                if lines.unfinished > MAX_MESSAGE_BYTES:
                    self.fault = f"sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
                if self.fault:
                    # Before the stream closes, so that waiting calls know the reason.
                    self._on_end()
                    return

    def _note_stray(self, line: bytes) -> None:
        if not line.strip():
            return
        # Some servers print a greeting and then work correctly.
        self._stray = line[:KEPT_OUTPUT_BYTES]
        self._stray_size += len(line)
        if self._stray_size > _MAX_STRAY_BYTES:
            self.fault = "prints something other than MCP messages on its standard output"

    async def _write(self, from_us: MemoryObjectReceiveStream[SessionMessage]) -> None:
        with from_us:
            async for item in from_us:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await self._pipes.send(text.encode() + b"\n")
                except OSError:
                    self._on_end()
                    return

    async def _end_group(self) -> None:
        stdin = self._process.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_GRACE):
                await self._pipes.exited.wait()
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(_TERM_GRACE):
                while self._signal(0):
                    await asyncio.sleep(_GROUP_POLL)

    def _signal(self, number: int) -> bool:
        """Send a signal to the process group; False when the group is empty."""
        if sys.platform == "win32":
            if number:
                with suppress(ProcessLookupError):
                    self._process.terminate()
            return not self._pipes.exited.is_set()
        # The group keeps the id of its leader after the leader has exited.
        try:
            os.killpg(self._process.get_pid(), number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def _exit(code: int | None) -> str:
    if code is None:
        return "closed its standard input or output"
    if code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
