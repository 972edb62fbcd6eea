"""Real processes to do harm with: writers that are killed, programs that are run to their end."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Final, TypeVar

T = TypeVar("T")

ROOT: Final = Path(__file__).parent.parent.parent
PATIENCE: Final = 40.0
"""Seconds after which something that was to happen is taken to have not happened."""


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds, and fail when it never does."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {PATIENCE:.0f} seconds"
        time.sleep(0.002)


def has_ended(pid: int) -> bool:
    """Whether a process has ended; its parent need not have waited for it yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def spin(seconds: float) -> None:
    """Let another process get to some point that nobody can name; too short to sleep."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def run_module(name: str, *arguments: str) -> str:
    """Run a module of the tests to its end; what it printed."""
    done = subprocess.run(
        module(name, *arguments), cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Writer:
    """A process that performs the script; `acknowledged` counts the changes it has said were made."""

    def __init__(self, address: str, session: str = "s", first: int = 0) -> None:
        self.acknowledged = first
        self._more = threading.Condition()
        self._process = subprocess.Popen(
            module("tests.faults.writer", address, session, str(first)),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=[self._process.stdout])
        self._listener.start()

    def _listen(self, output: IO[str]) -> None:
        for line in output:
            # What was cut off in the middle was not said.
            if line.endswith("\n"):
                with self._more:
                    self.acknowledged = int(line) + 1
                    self._more.notify_all()
        with self._more:
            self._more.notify_all()

    def wait_for(self, changes: int) -> None:
        """Until so many changes were acknowledged."""

        def there() -> bool:
            return self.acknowledged >= changes or self._process.poll() is not None

        with self._more:
            assert self._more.wait_for(there, PATIENCE), "the writer hangs"
        assert self.acknowledged >= changes, self._process.stderr and self._process.stderr.read()

    def kill(self) -> int:
        """End it with SIGKILL; how many changes it had acknowledged in all."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        _close(self._process)
        return self.acknowledged

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _close(process: subprocess.Popen[Any]) -> None:
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


class Answer:
    """What a command left behind, as bytes: a terminal sees nothing else."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out[-2000:]!r}\n--- stderr\n{self.err[-2000:]!r}"


def punchlist(folder: Path, env: Mapping[str, str], *arguments: str | bytes) -> Answer:
    """Run the program in a folder; arguments may be any bytes."""
    command = [sys.executable, "-m", "punchlist", *arguments]
    return Answer(
        subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    )


def together(*calls: Callable[[], T]) -> list[T]:
    """Several commands at the same time: starting Python is most of what a command costs."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda call: call(), calls))


def answered(
    folder: Path, env: Mapping[str, str], question: bytes, answer: bytes, *arguments: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the program at a terminal and answer its question; keys that are typed earlier do not count."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "punchlist", *arguments],
            cwd=folder,
            env=env,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            asked = b""
            while question not in asked and (part := os.read(process.stderr.fileno(), 65_536)):
                asked += part
            os.write(ours, answer)
            out, err = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    return subprocess.CompletedProcess(process.args, process.returncode, out, asked + err)


class Program:
    """The program while it runs: piped, or in a terminal of a given size."""

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        *arguments: str,
        columns: int | None = None,
        lines: int = 24,
        terminal: str = "xterm",
    ) -> None:
        self.output = b""
        self._ended = False
        self._more = threading.Condition()
        command = [sys.executable, "-m", "punchlist", *arguments]
        if columns is None:
            self._terminal = None
            self.process = subprocess.Popen(
                command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            assert self.process.stdout is not None
            source = self.process.stdout.fileno()
        else:
            source, inside = pty.openpty()
            self._terminal = source
            self.resize(columns, lines)
            # A terminal is asked for its size only where the environment does not say it.
            asked = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES")}
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env={**asked, "TERM": terminal},
                stdin=inside,
                stdout=inside,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            os.close(inside)
        self._listener = threading.Thread(target=self._listen, args=[source])
        self._listener.start()

    def _listen(self, source: int) -> None:
        while True:
            try:
                part = os.read(source, 65_536)
            except OSError:
                # Linux says so when the last process has left a terminal.
                part = b""
            with self._more:
                self.output += part
                self._more.notify_all()
            if not part:
                return

    def wait_for(self, *texts: str) -> str:
        """Until all these were printed; everything printed so far."""
        wanted = [text.encode() for text in texts]

        def there() -> bool:
            return all(text in self.output for text in wanted) or self.process.poll() is not None

        with self._more:
            assert self._more.wait_for(there, PATIENCE), f"never printed {texts}, but {self.output!r}"
        assert all(text in self.output for text in wanted), f"ended with {self.output!r}"
        return self.output.decode()

    def resize(self, columns: int, lines: int = 24) -> None:
        assert self._terminal is not None
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def answer(self, text: str) -> None:
        """Type something."""
        assert self._terminal is not None
        os.write(self._terminal, text.encode())

    def interrupt(self) -> Answer:
        """Press Ctrl-C; what the program left behind."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> Answer:
        code = self.process.wait(PATIENCE)
        self._listener.join()
        assert self.process.stderr is not None
        errors = self.process.stderr.read()
        _close(self.process)
        if self._terminal is not None:
            os.close(self._terminal)
        self._ended = True
        return Answer(subprocess.CompletedProcess([], code, self.output, errors))

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended:
            self.process.kill()
            self.end()
