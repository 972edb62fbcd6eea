"""Programs that measure and check: run to their end or to their limit, and nothing of them is left.

For threads that may wait; an agent's own commands have `tools/command.py`. No shell is between us and the
program, and no secret is in its environment.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from punchlist.kernel import child_processes
from punchlist.kernel.ids import new_id
from punchlist.kernel.secrets import without_secrets

_CHUNK: Final = 65_536
_KEPT: Final = 4_096
"""Bytes of the end of what it prints beside its output."""
_LAST_WORDS: Final = 0.2
"""Seconds for which output is read after the program has ended, while something it left still holds the pipe."""
# Nobody is there to page through anything or to type a password.
_QUIET: Final = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0"}


class ProcessStartError(Exception):
    """There is no such program, or it may not be run."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    code: int | None
    """None when it had to be ended."""
    output: bytes
    """What it printed first, at most as much as was asked for."""
    tail: bytes
    """The end of what it printed there."""
    errors: bytes
    """The end of what it printed on its error stream."""
    late: bool = False
    too_much: bool = False

    @property
    def last_error(self) -> str:
        """The last line of the error stream that says something."""
        return next((line for line in reversed(told(self.errors).splitlines()) if line.strip()), "").strip()


def told(printed: bytes) -> str:
    return printed.decode("utf-8", errors="replace")


def run(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    most: int,
    input: bytes = b"",
    stop_at_most: bool = True,
) -> ProcessResult:
    """Run a program. One that prints more than `most` bytes is ended, or only its first are kept."""
    mark = f"metric-{new_id()}"
    begun = time.monotonic()
    with ExitStack() as stack:
        # A file, not a pipe: however long the input is, nobody waits for anybody.
        given = stack.enter_context(tempfile.TemporaryFile())
        given.write(input)
        given.seek(0)
        try:
            process = subprocess.Popen(
                arguments,
                cwd=folder,
                env={**without_secrets(environment), **_QUIET, child_processes.MARK: mark},
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ProcessStartError(reason) from None
        assert process.stdout is not None
        assert process.stderr is not None
        reader = stack.enter_context(_PipeReader(process.stdout, process.stderr, most, stop_at_most))
        try:
            late = _wait(process, reader, begun + seconds)
        finally:
            # Also when we are interrupted.
            child_processes.end_all_here(mark, process.pid, since=begun)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LAST_WORDS)
        ended = late or reader.too_much
        code = None if ended else process.returncode
        return ProcessResult(code, bytes(reader.output), reader.tail, reader.errors, late, reader.too_much)


def _wait(process: subprocess.Popen[bytes], reader: _PipeReader, until: float) -> bool:
    """Until the program ends or prints too much; whether it took too long."""
    pause = 0.002
    while process.poll() is None:
        left = until - time.monotonic()
        if left <= 0:
            return True
        if reader.too_much:
            return False
        # Its end is not announced: when it is silent, we look more and more rarely.
        pause = 0.002 if reader.read(min(pause, left)) else min(pause * 1.5, 0.05)
    last = time.monotonic() + _LAST_WORDS
    while reader.open and not reader.too_much and (left := last - time.monotonic()) > 0:
        reader.read(left)
    return False


class _PipeReader:
    """Takes what comes from both pipes, and keeps what is wanted of it."""

    def __init__(self, output: IO[bytes], errors: IO[bytes], most: int, stop_at_most: bool) -> None:
        self.output = bytearray()
        self.tail = b""
        self.errors = b""
        self.too_much = False
        self._most = most
        self._stop_at_most = stop_at_most
        self._pipes = (output, errors)
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> _PipeReader:
        for which, pipe in enumerate(self._pipes):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, which)
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for pipe in self._pipes:
            pipe.close()

    @property
    def open(self) -> bool:
        return bool(self._selector.get_map())

    def read(self, seconds: float) -> bool:
        """Wait for more, at most so long; whether anything came."""
        if not self.open:
            time.sleep(seconds)
            return False
        ready = self._selector.select(seconds)
        for key, _ in ready:
            self._take(self._pipes[key.data])
        return bool(ready)

    def _take(self, pipe: IO[bytes]) -> None:
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(pipe)
        elif pipe is self._pipes[1]:
            self.errors = (self.errors + data)[-_KEPT:]
        else:
            self.tail = (self.tail + data)[-_KEPT:]
            room = self._most - len(self.output)
            self.output += data[:room]
            self.too_much = self._stop_at_most and len(data) > room
