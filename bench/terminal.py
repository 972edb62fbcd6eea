"""A program in a pseudo-terminal: what it paints, and when."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Final, Self

COLUMNS: Final = 120
ROWS: Final = 40
SECONDS: Final = 60.0
KEPT: Final = 200_000
"""Bytes of the end of the output that are searched."""


class Terminal:
    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        variables = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.begun = perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self._output = b""

    def press(self, keys: str) -> float:
        """Press keys; returns when."""
        self._output = b""
        pressed = perf_counter()
        os.write(self._master, keys.encode())
        return pressed

    def forget(self) -> None:
        """Search only what is painted from now on."""
        self.read(0.0)
        self._output = b""

    def read(self, seconds: float) -> None:
        """Take what is painted, for so long."""
        end = perf_counter() + seconds
        while select.select([self._master], [], [], max(end - perf_counter(), 0.0))[0]:
            self._output = (self._output + os.read(self._master, 65_536))[-KEPT:]

    def until(self, *texts: str) -> float:
        """When all texts were painted, each in one piece."""
        wanted, end = [text.encode() for text in texts], perf_counter() + SECONDS
        while not all(text in self._output for text in wanted):
            left = end - perf_counter()
            if left <= 0 or not select.select([self._master], [], [], left)[0]:
                raise TimeoutError(f"{texts} were not painted within {SECONDS:g} s: {self._output[-2_000:]!r}")
            self._output = (self._output + os.read(self._master, 65_536))[-KEPT:]
        return perf_counter()

    def cpu_seconds(self) -> float:
        """The processor time that the program has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Resident bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1_024

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        os.close(self._master)
