"""An MCP server as a process: messages on its standard input and output, one a line.

The SDK has a transport of this kind. Ours differs in what happens when things go wrong: the SDK's
does not tell how a process ended, leaves the children of a process that ended by itself, takes four
seconds to end a stubborn one, takes lines of any length, and reports a stray `print` of the server's
on our terminal.

A process is over when it exits, even if a child of its still holds the pipes; or when it closes its
standard output or input; or when what it prints cannot be MCP. `over` is set then, and the owner of
the connection leaves the context, which ends the whole process group. Not ended: a descendant that
made a session of its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.text import excerpt, visible_block
from punchlist.tools.mcp.pipes import KEPT_OUTPUT_BYTES, LineBuffer, ProcessPipes
from punchlist.tools.mcp.settings import ServerSecrets

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
_MOST_STRAY_OUTPUT: Final = 1024 * 1024
_STRAY_SHOWN: Final = 200
_STDERR_LINES: Final = 3
_STDERR_SHOWN: Final = 600

# A cancelled call sends a word of it; with room for that, it need not wait for a server that does not read.
_QUEUED_MESSAGES: Final = 64

_CLOSE_GRACE: Final = 0.3
_TERM_GRACE: Final = 0.5
_REAP_LIMIT: Final = 2.0
_LAST_WORDS_LIMIT: Final = 0.5
_GROUP_POLL: Final = 0.01
_KILL: Final = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


class ProcessTransport:
    """What `mcp.Client` connects through. Entered once."""

    def __init__(self, command: tuple[str, ...], env: dict[str, str], cwd: Path | None, over: asyncio.Event) -> None:
        self._command = command
        self._env = env
        self._cwd = cwd
        self._over = over
        self._pipes = ProcessPipes(self._leave)
        self._stray = b""
        self._stray_size = 0
        self.fault = ""
        self._how = ""
        self._ending = False
        self.left = False
        """It ended by itself, before it was asked to."""

    async def __aenter__(self) -> Streams:
        import anyio

        loop = asyncio.get_running_loop()
        transport, _ = await loop.subprocess_exec(
            lambda: self._pipes, *self._command, env=self._env, cwd=self._cwd, start_new_session=True
        )
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
                # Cancelled or not: nothing of the server outlives the next line.
                self._signal(_KILL)
                await self._release()

    async def _release(self) -> None:
        for task in self._tasks:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAP_LIMIT):
                await self._pipes.exited.wait()
        self._process.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAP_LIMIT):
                await self._pipes.released.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.close()

    def _leave(self) -> None:
        self.left = self.left or not self._ending
        self._over.set()

    async def end(self) -> str:
        """How it ended, once the other side has. Exit and end of output come in any order."""
        if not self._how:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_LIMIT):
                    await self._pipes.exited.wait()
                    await self._pipes.stderr_ended.wait()
                    # It may have answered before it left.
                    await asyncio.wait(self._tasks[:1])
            self._how = self.fault or _exit(self._process.get_returncode())
        return self._how

    def evidence(self, secrets: ServerSecrets) -> str:
        """What it printed, as far as it may explain a failure."""
        told = ""
        # Secrets go first: half of one, left by a cut, would not be recognized.
        if stray := secrets.hide(_text(self._stray)):
            told += f"\nIt printed on standard output, where only MCP messages belong: {excerpt(stray, _STRAY_SHOWN)}"
        if lines := secrets.hide(_text(self._pipes.stderr)).strip().splitlines()[-_STDERR_LINES:]:
            told += "\nThe end of its standard error:\n" + visible_block("\n".join(lines)[-_STDERR_SHOWN:])
        return told

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
                        await to_us.send(SessionMessage(message))
                if lines.unfinished > MAX_MESSAGE_BYTES:
                    self.fault = f"sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
                if self.fault:
                    # Before the stream closes, so that whoever waits for an answer knows why.
                    self._leave()
                    return

    def _note_stray(self, line: bytes) -> None:
        if not line.strip():
            return
        # Servers do print a line of greeting, and go on to work.
        self._stray = line[:KEPT_OUTPUT_BYTES]
        self._stray_size += len(line)
        if self._stray_size > _MOST_STRAY_OUTPUT:
            self.fault = "prints something other than MCP messages on its standard output"

    async def _write(self, from_us: MemoryObjectReceiveStream[SessionMessage]) -> None:
        with from_us:
            async for item in from_us:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await self._pipes.send(text.encode() + b"\n")
                except OSError:
                    self._leave()
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
        """Send it to the whole group; False when nobody is left to get it."""
        if sys.platform == "win32":
            if number:
                with suppress(ProcessLookupError):
                    self._process.terminate()
            return not self._pipes.exited.is_set()
        # The leader's number is the group's, also after the leader is gone.
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
