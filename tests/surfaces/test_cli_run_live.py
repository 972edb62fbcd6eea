"""`punchlist run` in a terminal: text as it is written, one line per call, and the list below, drawn once (C15)."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import NamedTuple

import pytest
import wcwidth
from tests.conftest import Cli
from tests.faults.screen import Screen, acting

PLAN = "- calls: [{tool: create_todo, arguments: {items: [{title: Look}]}}]\n"
DONE = (
    "- calls: [{tool: list_directory}, "
    "{tool: complete_todo, arguments: {todoId: '{{ created[0].id }}', outcome: done}}]\n"
)
EARLY = PLAN + "- text: |-\n    The report\n    has two lines.\n" + DONE + "- All done.\n"
SPINNER = "[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"


class Shown(NamedTuple):
    raw: str
    """All that the terminal received."""
    stdout: str
    """What a pipe received, if stdout was one."""
    screen: list[str]


def in_terminal(
    project: Path,
    environment: dict[str, str],
    script: str,
    *arguments: str,
    columns: int = 100,
    lines: int = 24,
    piped: bool = False,
) -> Shown:
    """What is to be seen when a run has ended. With `piped`, only stderr is the terminal."""
    (project / "script.yaml").write_text(script)
    source, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    asked = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "punchlist", "run", "Do it.", "--model", "rehearsal:script.yaml", *arguments]
    answer = project / "answer"
    with (
        answer.open("wb") as file,
        subprocess.Popen(
            command,
            cwd=project,
            env={**asked, "TERM": "xterm", "COLUMNS": str(columns), "LINES": str(lines)},
            stdin=subprocess.DEVNULL,
            stdout=file if piped else inside,
            stderr=inside,
        ) as process,
    ):
        os.close(inside)
        output = b""
        while part := _read(source):
            output += part
        assert process.wait(30) == 0
    os.close(source)
    raw = output.decode()
    return Shown(raw, answer.read_text(), Screen(columns).show(raw))


def _read(source: int) -> bytes:
    try:
        return os.read(source, 65_536)
    except OSError:
        # Linux says so when the last process has left a terminal.
        return b""


def scripted(tasks: int, title: str = "Task") -> str:
    items = ", ".join(f"{{title: '{title} {n}'}}" for n in range(tasks))
    done = [
        f"- calls: [{{tool: find_files, arguments: {{pattern: '*.{n}'}}}}, "
        f"{{tool: complete_todo, arguments: {{todoId: '{{{{ created[{n}].id }}}}', outcome: done}}}}]\n"
        for n in range(tasks)
    ]
    return f"- calls: [{{tool: create_todo, arguments: {{items: [{items}]}}}}]\n- Soon.\n{''.join(done)}- All done.\n"


@pytest.mark.spec("C15", "W9")
def test_the_list_is_drawn_once_below_what_happens(project: Path, environment: dict[str, str]) -> None:
    shown = in_terminal(project, environment, scripted(3), piped=True)
    assert shown.raw.count("┌") > 2, "it was drawn again when it changed"
    boxes = [number for number, line in enumerate(shown.screen) if line.startswith("┌")]
    assert len(boxes) == 1
    assert sum(line.startswith("✓") for line in shown.screen[: boxes[0]]) == 7
    assert shown.screen[boxes[0] + 1].startswith("│ ✓ Task 0")
    assert shown.screen[-3].startswith("│ 3/3 ended · continued 1 of 10 times")
    assert shown.screen[-1].startswith("· ended as completed")


@pytest.mark.spec("C15")
def test_a_list_longer_than_the_terminal_is_drawn_once_too(project: Path, environment: dict[str, str]) -> None:
    screen = in_terminal(project, environment, scripted(12), lines=12).screen
    assert sum(line.startswith("┌") for line in screen) == 1
    assert any("12/12 ended, 10 not shown" in line for line in screen)


@pytest.mark.spec("C13", "C15")
def test_text_is_shown_once_on_the_terminal_and_the_answer_is_whole_on_stdout(
    project: Path, environment: dict[str, str]
) -> None:
    together = in_terminal(project, environment, EARLY)
    for line in ("The report", "has two lines.", "All done."):
        assert together.screen.count(line) == 1, together.screen
    apart = in_terminal(project, environment, EARLY, piped=True)
    assert apart.screen.count("has two lines.") == 1
    assert apart.screen.count("All done.") == 1
    assert apart.stdout.endswith("All done.\n")
    assert not acting(apart.stdout.encode())


@pytest.mark.spec("C15")
def test_a_line_with_a_spinner_shows_time_tokens_and_continuations(project: Path, environment: dict[str, str]) -> None:
    shown = in_terminal(project, environment, PLAN + "- {text: Soon., tokens: 3100}\n" + DONE + "- All done.\n")
    assert re.search(f"{SPINNER} 0 s · 0 tokens · auto 0/10", shown.raw)
    assert re.search(rf"{SPINNER} \d+ s · 3\.1k tokens · auto 1/10", shown.raw)
    assert not any(re.match(SPINNER, line) for line in shown.screen), "it is gone at the end"
    off = in_terminal(project, environment, "- Done.\n", "--no-auto-complete-todos")
    assert "· auto off" in off.raw


@pytest.mark.spec("C15")
def test_a_call_is_one_line_with_its_state_and_duration(project: Path, environment: dict[str, str]) -> None:
    script = (
        "- calls: [{tool: run_command, arguments: {command: 'echo begun; sleep 0.3'}}]\n"
        "- calls: [{tool: read_file, arguments: {path: missing}}]\n- Done.\n"
    )
    shown = in_terminal(project, environment, script, "--mode", "yolo")
    assert re.search(r"▶ run_command echo begun; sleep 0\.3 \(0 s\)", shown.raw), "while it runs"
    assert any(re.fullmatch(r"✓ run_command echo begun; sleep 0\.3 \([\d.]+ s\)  begun", line) for line in shown.screen)
    assert any(re.match(r"✗ read_file missing \(\d+ ms\)  ", line) for line in shown.screen)
    assert not any("▶" in line for line in shown.screen)


@pytest.mark.spec("W9", "C15")
def test_a_narrow_terminal_wraps_only_the_text_of_the_model(project: Path, environment: dict[str, str]) -> None:
    said = "A sentence that is longer than forty columns, 世界 included."
    plan = scripted(3, "A long title of a task, with 世界, that must be wrapped").removeprefix("- ")
    shown = in_terminal(project, environment, f"- text: {said}\n  {plan}", columns=40)
    assert max(map(wcwidth.width, shown.screen)) <= 40
    rows = [line for line in shown.screen if line.startswith(("│", "┌", "└"))]
    assert len({wcwidth.width(row) for row in rows}) == 1
    assert said in "".join(shown.screen)


def test_colours_only_where_they_are_wanted(project: Path, environment: dict[str, str]) -> None:
    assert not re.search(r"\x1b\[[\d;]*m", in_terminal(project, environment, scripted(1)).raw)
    colored = {name: value for name, value in environment.items() if name != "NO_COLOR"}
    raw = in_terminal(project, colored, scripted(1)).raw
    assert "\x1b[32m✓\x1b[0m create_todo" in raw
    assert "│ \x1b[2m○\x1b[0m Task 0" in raw


@pytest.mark.spec("C13", "C15")
def test_without_a_terminal_there_are_plain_lines(punchlist: Cli, project: Path) -> None:
    (project / "script.yaml").write_text(EARLY)
    for variables in ({}, {"LANG": "C", "LC_ALL": "C"}, {"NO_COLOR": ""}):
        done = punchlist("run", "Do it.", "--model", "rehearsal:script.yaml", env=variables)
        assert not acting(done.stderr.encode())
        assert not re.search(SPINNER, done.stderr)
        assert "  The report\n  has two lines.\n· stopped early; continued 1 of 10 times\n" in done.stderr
        assert "All done." not in done.stderr


def test_a_terminal_without_unicode_gets_ascii(project: Path, environment: dict[str, str]) -> None:
    shown = in_terminal(project, {**environment, "PYTHONIOENCODING": "ascii:backslashreplace"}, scripted(2))
    assert shown.raw.isascii()
    assert "\\u" not in shown.raw
    assert "| x Task 0" in "\n".join(shown.screen)
