"""One program that runs: its output as it comes, and its end when it comes.

Not asyncio's own: that waits for the pipe to close, which anything the program leaves behind can
keep from happening, and it spends a thread on each program.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from punchlist.toolcalls.tool import ToolFailure

_CHUNK: Final = 65_536


class ToolProcess:
    """`ended` is done when the program itself has ended, `silent` when nobody can print any more."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        input: bytes = b"",
        take: Callable[[bytes], bool],
    ) -> None:
        """`take` gets the output, and says whether it wants more. `input` is short: it must fit into a pipe."""
        self.started_at = time.monotonic()
        self.ended_at = self.started_at
        try:
            self._process = subprocess.Popen(
                arguments,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE if input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise ToolFailure(f"Cannot be started: {error}.") from None
        self._take = take
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.silent: asyncio.Future[None] = self._loop.create_future()
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._read)
        self._watch_for_its_end()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(input)
            self._process.stdin.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        return self._process.returncode

    def _read(self) -> None:
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or not self._take(data):
            self._hush()

    def _hush(self) -> None:
        if not self.silent.done():
            self._loop.remove_reader(self._output)
            self.silent.set_result(None)

    def _watch_for_its_end(self) -> None:
        self._handle: int | None = None
        try:
            self._handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait_for_its_end, daemon=True).start()
        else:
            self._loop.add_reader(self._handle, self._end)

    def _wait_for_its_end(self) -> None:
        self._process.wait()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._process.poll() is None or self.ended.done():
            return
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
        self.ended_at = time.monotonic()
        self.ended.set_result(None)

    def close(self) -> None:
        """Let go of what we hold. The program has ended."""
        self._hush()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None
