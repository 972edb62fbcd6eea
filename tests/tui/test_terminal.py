"""The application in a real pseudo-terminal: its first screen, and `kill -9` while an agent works."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from time import monotonic

import pyte
import pytest
from tests.tui.stage import SESSION, rehearsal

from punchlist.app import Services
from punchlist.config import load

SECONDS = 40.0


class Terminal:
    """A program in a pseudo-terminal of 100 x 30 cells."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        variables = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def until(self, condition: Callable[[str], bool]) -> None:
        end = monotonic() + SECONDS
        while not condition("\n".join(self.screen.display)):
            assert monotonic() < end, "\n".join(self.screen.display)
            if select.select([self._master], [], [], 0.1)[0]:
                self._stream.feed(os.read(self._master, 65_536))

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        os.close(self._master)


@pytest.mark.spec("C14")
def test_killing_the_application_does_not_harm_the_turn(project: Path, environment: dict[str, str]) -> None:
    model = rehearsal(
        project,
        {"text": "I write it down.", "delay": 0.2},
        {"text": "All done.", "delay": 1},
    )
    command = [sys.executable, "-m", "punchlist", "chat", "Write it.", "--model", model, "-s", SESSION]
    terminal = Terminal(command, project, environment)
    terminal.until(lambda text: "❯ Write it." in text and "auto 0/" in text)
    terminal.kill()
    services = Services(load(cwd=project))
    end = monotonic() + SECONDS
    # The process of the turn may still be starting.
    while not (turns := services.conversations.turns(SESSION)) or turns[0].open:
        assert monotonic() < end
        select.select([], [], [], 0.05)
    turn = turns[0]
    services.close()
    assert str(turn.end_reason).startswith("completed")
