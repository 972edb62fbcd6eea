"""Run a program to its end or to its time limit, and leave none of its processes behind.

`run_process` is for the event loop and hands the output to a function as it arrives; `run_captured` is
for a thread and returns the output. Both use one `_Child`, whose pipes and pidfd are in one selector:
a thread waits on the selector, an event loop watches the selector's own descriptor.

`asyncio.subprocess` does not serve here: it reports an exit only when all pipes are closed, and a
background child can keep a pipe open.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.kernel import orphans, process_tree
from punchlist.kernel.ids import new_id
from punchlist.kernel.process_tree import ChildProcess

_CHUNK: Final = 65_536
_TAIL: Final = 4_096
_DRAIN: Final = 0.2
"""Seconds for which output is read after the program has exited while a child still holds the pipe open."""
_POLL: Final = 0.02
"""Seconds between two looks at the exit code where the system has no pidfd."""

# The program has no terminal: it must not start a pager or ask for a password.
NON_INTERACTIVE: Final = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "GIT_TERMINAL_PROMPT": "0",
}

Sink = Callable[[bytes], bool]
"""Receives output; returns False to end the program."""


class ProcessStartError(Exception):
    """The program does not exist or is not executable."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    code: int | None
    """Negative: the number of the signal that ended it. None: it could not be reaped."""
    timed_out: bool
    left_running: Sequence[ChildProcess]
    """Processes that the program started and that outlived it; they have been ended."""


@dataclass(frozen=True, slots=True)
class CapturedProcess:
    code: int | None
    """None when the runner ended it."""
    output: bytes
    """The first bytes of standard output, up to the limit."""
    tail: bytes
    """The last bytes of standard output."""
    errors: bytes
    """The last bytes of standard error."""
    timed_out: bool = False
    output_exceeded: bool = False

    def ending(self, seconds: float) -> str:
        """How it ended, for a message; `seconds` was its time limit."""
        if self.timed_out:
            return f"exceeded its time limit of {seconds:g} s and was killed"
        if self.code is not None and self.code < 0:
            return f"was killed by signal {-self.code}"
        return f"ended with exit code {self.code}"

    @property
    def last_error(self) -> str:
        """The last line of standard error that is not blank."""
        lines = self.errors.decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


async def run_process(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    mark: str,
    seconds: float,
    output: Sink,
    input: bytes = b"",
    kill_after: float = process_tree.TERM_SECONDS,
) -> ProcessExit:
    """Run a program on the event loop; `output` receives standard output and standard error together.

    At the time limit the program is asked to end, and `kill_after` seconds later it is killed. Cancelling the
    call ends the program before the cancellation is passed on. `mark` identifies its processes.
    """
    child = _Child(arguments, folder, environment, mark, input, output, None)
    left: Sequence[ChildProcess] = ()
    try:
        await child.wait_async(seconds)
        left = process_tree.still_running(mark, child.pid, child.exited_at)
    finally:
        patience = kill_after if child.timed_out else process_tree.TERM_SECONDS
        await _to_completion(child.end_async(patience))
    return ProcessExit(child.code, child.timed_out, left)


async def _to_completion(work: Coroutine[Any, Any, None]) -> None:
    """Finish the work, and only then pass on a cancellation that arrived in the meantime."""
    import asyncio

    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


def run_captured(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    max_output: int,
    input: bytes = b"",
    stop_at_max: bool = True,
    merged: bool = False,
) -> CapturedProcess:
    """Run a program and return what it printed.

    A program that prints more than `max_output` bytes is ended; with `stop_at_max=False` it goes on, and only
    the first bytes are kept. With `merged`, standard error goes where standard output goes. For a thread: it blocks.
    """
    first, tail, errors = bytearray(), _Tail(), _Tail()

    def take(data: bytes) -> bool:
        room = max_output - len(first)
        first.extend(data[:room])
        tail.take(data)
        return len(data) <= room or not stop_at_max

    child = _Child(arguments, folder, environment, f"captured-{new_id()}", input, take, None if merged else errors.take)
    try:
        child.wait(seconds)
    finally:
        child.end()
    code = None if child.timed_out or child.refused else child.code
    return CapturedProcess(code, bytes(first), tail.data, errors.data, child.timed_out, child.refused)


class _Tail:
    def __init__(self) -> None:
        self.data = b""

    def take(self, data: bytes) -> bool:
        self.data = (self.data + data)[-_TAIL:]
        return True


_running: set[_Child] = set()
_starting: dict[str, float] = {}
"""The marks of programs that are being started, and since when: one can run before this process knows its pid."""


def end_all() -> None:
    """End the programs that run now, for a process that is about to end."""
    ending = list(_running)
    for child in ending:
        orphans.end_command(child.pid)
    for child in ending:
        process_tree.terminate_blocking(child.mark, child.pid, since=child.started_at)
    for mark, began in list(_starting.items()):
        for process in process_tree.still_running(mark, since=time.monotonic()):
            if process.parent == os.getpid():
                process_tree.terminate_blocking(mark, process.pid, since=began)


class _Child:
    """A started program, in a session of its own."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        mark: str,
        input: bytes,
        output: Sink,
        errors: Sink | None,
    ) -> None:
        """Without `errors`, standard error goes where standard output goes."""
        self.mark = mark
        self.started_at = self.exited_at = time.monotonic()
        _starting[mark] = self.started_at
        try:
            self._process = _start(arguments, folder, {**environment, **NON_INTERACTIVE}, mark, input, errors is None)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ProcessStartError(reason) from None
        else:
            _running.add(self)
        finally:
            _starting.pop(mark, None)
        self.timed_out = False
        self.refused = False
        """A sink did not want more output."""
        self._selector = selectors.DefaultSelector()
        self._open_pipes = 0
        for pipe, sink in ((self._process.stdout, output), (self._process.stderr, errors)):
            if pipe is not None and sink is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ, sink)
                self._open_pipes += 1
        self._pidfd: int | None = None
        with suppress(AttributeError, OSError):
            self._pidfd = os.pidfd_open(self.pid)
            self._selector.register(self._pidfd, selectors.EVENT_READ, None)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        return self._process.returncode

    # --- waiting ----------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        """Wait until the program ends or a sink refuses its output."""
        for pause in self._waits(seconds):
            self._handle_events(pause)

    async def wait_async(self, seconds: float) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        moved = asyncio.Event()

        def on_event() -> None:
            self._handle_events(0)
            moved.set()

        watched = self._selector.fileno()
        loop.add_reader(watched, on_event)
        try:
            for pause in self._waits(seconds):
                moved.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await moved.wait()
        finally:
            loop.remove_reader(watched)

    def _waits(self, seconds: float) -> Iterator[float]:
        """The seconds to wait for each next event, until the program has ended or `timed_out` is set."""
        deadline = self.started_at + seconds
        while not self._exited() and not self.refused:
            left = deadline - time.monotonic()
            if left <= 0:
                self.timed_out = True
                return
            orphans.reap()
            pause = orphans.REAP_SECONDS if orphans.are_kept() else left
            yield min(left, pause if self._pidfd is not None else _POLL)
        deadline = time.monotonic() + _DRAIN
        while self._open_pipes and not self.refused and (left := deadline - time.monotonic()) > 0:
            yield left

    def _exited(self) -> bool:
        return self._process.returncode is not None or (self._pidfd is None and self._reap())

    def _reap(self) -> bool:
        if self._process.poll() is None:
            return False
        orphans.end_command(self.pid)
        self.exited_at = time.monotonic()
        return True

    def _handle_events(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                if self._reap():
                    self._selector.unregister(key.fileobj)
                continue
            try:
                data = os.read(key.fd, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                self._selector.unregister(key.fileobj)
                self._open_pipes -= 1
            elif not self.refused and not key.data(data):
                self.refused = True

    # --- ending -----------------------------------------------------------------------------------------

    def end(self) -> None:
        orphans.end_command(self.pid)
        try:
            process_tree.terminate_blocking(self.mark, self.pid, since=self.started_at)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_DRAIN)
        finally:
            self._close()

    async def end_async(self, patience: float) -> None:
        import asyncio

        orphans.end_command(self.pid)
        try:
            await process_tree.terminate(self.mark, self.pid, patience, self.started_at)
            deadline = time.monotonic() + _DRAIN
            while self._process.poll() is None and time.monotonic() < deadline:
                await asyncio.sleep(_POLL)
        finally:
            self._close()

    def _close(self) -> None:
        _running.discard(self)
        orphans.forget(self.pid)
        orphans.reap()
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)


def _start(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], mark: str, input: bytes, merged: bool
) -> subprocess.Popen[bytes]:
    orphans.keep()
    # A file, not a pipe: input of any length cannot block either side.
    with tempfile.TemporaryFile() if input else open(os.devnull, "rb") as stdin, orphans.starting() as add:
        if input:
            stdin.write(input)
            stdin.seek(0)
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env={**environment, process_tree.MARK_VARIABLE: mark},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        add(process.pid)
        orphans.add_command(process.pid)
        return process
