"""`punchlist run` in a terminal: the list is drawn below what happens, and only once (C15)."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.faults.screen import Screen


def shown_in_terminal(project: Path, environment: dict[str, str], script: str, lines: int) -> list[str]:
    """What is to be seen on stderr when a run has ended."""
    (project / "script.yaml").write_text(script)
    source, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 100, 0, 0))
    asked = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "punchlist", "run", "Do it.", "--model", "rehearsal:script.yaml"]
    with subprocess.Popen(
        command,
        cwd=project,
        env={**asked, "TERM": "xterm", "COLUMNS": "100", "LINES": str(lines)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=inside,
    ) as process:
        os.close(inside)
        output = b""
        while part := _read(source):
            output += part
        assert process.wait(30) == 0
    os.close(source)
    assert output.count("┌".encode()) > 2, "it was drawn again when it changed"
    return Screen().show(output.decode())


def _read(source: int) -> bytes:
    try:
        return os.read(source, 65_536)
    except OSError:
        # Linux says so when the last process has left a terminal.
        return b""


def scripted(tasks: int) -> str:
    items = ", ".join(f"{{title: Task {n}}}" for n in range(tasks))
    done = [
        f"- calls: [{{tool: complete_todo, arguments: {{todoId: '{{{{ created[{n}].id }}}}', outcome: done}}}}]\n"
        for n in range(tasks)
    ]
    return f"- calls: [{{tool: create_todo, arguments: {{items: [{items}]}}}}]\n- Soon.\n{''.join(done)}- All done.\n"


@pytest.mark.spec("C15", "W9")
def test_the_list_is_drawn_once_below_what_happens(project: Path, environment: dict[str, str]) -> None:
    screen = shown_in_terminal(project, environment, scripted(3), 24)
    boxes = [number for number, line in enumerate(screen) if line.startswith("┌")]
    assert len(boxes) == 1
    assert sum(line.startswith("✓") for line in screen[: boxes[0]]) == 4
    assert screen[boxes[0] + 1].startswith("│ ✓ Task 0")
    assert screen[-3].startswith("│ 3/3 ended · continued 1 of 10 times")
    assert screen[-1].startswith("· ended as completed")


@pytest.mark.spec("C15")
def test_a_list_longer_than_the_terminal_is_drawn_once_too(project: Path, environment: dict[str, str]) -> None:
    screen = shown_in_terminal(project, environment, scripted(12), 12)
    assert sum(line.startswith("┌") for line in screen) == 1
    assert any("12/12 ended, 9 not shown" in line for line in screen)
