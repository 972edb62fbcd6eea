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
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from time import monotonic

import pyte
import pytest
from tests.tui.stage import SESSION, rehearsal

from punchlist.app import Services
from punchlist.config import load
from punchlist.surfaces.tui.backend import Backend
from punchlist.views import repository

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

    def until(self, condition: Callable[[str], bool], seconds: float = SECONDS) -> None:
        end = monotonic() + seconds
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


def application(folder: Path, environment: dict[str, str], *arguments: str) -> Terminal:
    """The application in a conversation."""
    command = [sys.executable, "-m", "punchlist", "chat", "-s", SESSION, *arguments]
    return Terminal(command, folder, environment)


@pytest.mark.spec("C14")
def test_killing_the_application_does_not_harm_the_turn(project: Path, environment: dict[str, str]) -> None:
    model = rehearsal(
        project,
        {"text": "I write it down.", "delay": 0.2},
        {"text": "All done.", "delay": 1},
    )
    terminal = application(project, environment, "Write it.", "--model", model)
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


@pytest.mark.spec("X13")
def test_bare_punchlist_uses_the_model_of_the_environment_and_names_what_goes_on(
    project: Path, environment: dict[str, str]
) -> None:
    model = rehearsal(project, {"text": "Slow.", "delay": 60})
    command = [sys.executable, "-m", "punchlist"]
    terminal = Terminal(command, project, {**environment, "PUNCHLIST_MODEL": model})
    terminal.until(lambda text: "Nothing here yet" in text)
    terminal.type("n")
    terminal.until(lambda text: "A new conversation" in text and "rehearsal:rehearsal.yaml" in text)
    terminal.type("Begin.")
    terminal.until(lambda text: "Begin." in text)
    terminal.type("\r")
    terminal.until(lambda text: "working" in text)
    terminal.type("\x02")
    terminal.until(lambda text: "Working  1" in text)
    terminal.type("q")
    terminal.until(lambda text: "goes on running: punchlist chat -s" in text)
    services = Services(load(cwd=project))
    with services.store.read() as tx:
        [turn] = repository.open_turns(tx)
    Backend(services).interrupt(turn.conversation_id)
    services.close()
    terminal.kill()


@pytest.mark.spec("S4")
def test_arguments_are_edited_in_the_editor_and_asked_about_again(project: Path, environment: dict[str, str]) -> None:
    model = rehearsal(
        project, {"calls": [{"tool": "run_command", "arguments": {"command": "echo hello > made"}}]}, {"text": "Done."}
    )
    editor = project / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/hello/changed/' \"$1\"\n")
    editor.chmod(0o755)
    command = [sys.executable, "-m", "punchlist", "chat", "--model", model, "Make it."]
    terminal = Terminal(command, project, {**environment, "EDITOR": str(editor)})
    terminal.until(lambda text: "y once" in text)
    # Until the question can be answered.
    while "will run as edited" not in "\n".join(terminal.screen.display):
        terminal.type("e")
        with suppress(AssertionError):
            terminal.until(lambda text: "will run as edited" in text, 3)
    assert not (project / "made").exists()
    terminal.until(lambda text: "echo changed" in text and "y once" in text)
    while not (project / "made").exists():
        terminal.type("y")
        with suppress(AssertionError):
            terminal.until(lambda text: "Done." in text, 3)
    terminal.until(lambda text: "Done." in text and "edited by" in text)
    assert (project / "made").read_text() == "changed\n"
    terminal.kill()
