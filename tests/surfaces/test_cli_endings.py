"""How the program ends when somebody has had enough, and in shells that are poor."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.processes import Answer, Program, eventually, punchlist
from tests.faults.screen import acting
from tests.faults.script import Script

PROGRAM = f'"{sys.executable}" -m punchlist'


@pytest.fixture
def agent(project: Path) -> Iterator[Script]:
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    script.perform_all(40)
    yield script
    script.close()


def _shell(project: Path, environment: dict[str, str], line: str) -> Answer:
    command = ["bash", "-c", f"set -o pipefail; {line}"]
    return Answer(
        subprocess.run(
            command, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    )


@pytest.mark.parametrize("command", ["log", "todos --json"])
def test_a_reader_that_has_had_enough_ends_it_quietly(
    project: Path, environment: dict[str, str], agent: Script, command: str
) -> None:
    # A reader that never reads at all: whatever is written comes too late.
    answer = _shell(project, environment, f"{PROGRAM} {command} | true")
    assert answer.err == b""


def test_the_first_line_of_the_log_can_be_had_alone(project: Path, environment: dict[str, str], agent: Script) -> None:
    answer = _shell(project, environment, f"{PROGRAM} log | head -1")
    assert answer.out.count(b"\n") == 1
    assert answer.err == b""


@pytest.mark.parametrize("line", ["log >/dev/full", "sessions show nothing --json >/dev/full"])
def test_output_that_cannot_be_written_is_an_error_in_a_sentence(
    project: Path, environment: dict[str, str], agent: Script, line: str
) -> None:
    answer = _shell(project, environment, f"{PROGRAM} {line}")
    assert answer.code == 1
    assert answer.err.startswith(b"punchlist: ")
    assert b"Traceback" not in answer.err
    assert b"unexpected" not in answer.err
    assert b"Exception ignored" not in answer.err


def test_a_folder_that_was_removed_is_named_as_the_cause(project: Path, environment: dict[str, str]) -> None:
    answer = _shell(project, environment, f"mkdir gone; cd gone; rmdir ../gone; {PROGRAM} todos")
    assert (answer.code, answer.err) == (1, b"punchlist: The current folder was removed.\n")


@pytest.mark.parametrize("line", ["todos add x >&-", "todos add x <&- 2>&-"])
def test_closed_streams_do_not_keep_a_change_from_being_made(
    project: Path, environment: dict[str, str], line: str
) -> None:
    answer = _shell(project, environment, f"{PROGRAM} {line}")
    assert b"Traceback" not in answer.err
    assert b"unexpected" not in answer.err
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    assert [task.content for task in script.lists().checklist] == ["x"]
    script.close()


@pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="Linux tells what a process waits for")
def test_ctrl_c_ends_a_command_that_waits_for_another_writer(
    project: Path, environment: dict[str, str], agent: Script
) -> None:
    with closing(sqlite3.connect(project / ".punchlist" / "punchlist.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with Program(project, environment, "todos", "add", "x") as program:
            waits = Path(f"/proc/{program.process.pid}/wchan")
            eventually(lambda: "nanosleep" in waits.read_text(), "the command waits for its turn")
            began = time.monotonic()
            answer = program.interrupt()
            assert time.monotonic() - began < 5
    assert answer.code == 130
    assert answer.err == b""


@pytest.mark.parametrize(("keys", "code"), [(None, 130), ("n\n", 1)], ids=["Ctrl-C", "no"])
def test_a_question_that_is_not_answered_with_yes_changes_nothing(
    project: Path, environment: dict[str, str], keys: str | None, code: int
) -> None:
    with Program(project, environment, "install", "codex", columns=80) as asked:
        assert asked.process.stderr is not None
        assert asked.process.stderr.read(len("Make these changes?")) == b"Make these changes?"
        asked.wait_for("XDG_DATA_HOME")
        if keys:
            asked.answer(keys)
        answer = asked.end() if keys else asked.interrupt()
    assert answer.code == code
    assert not (project / ".codex").exists()


@pytest.mark.spec("W9")
@pytest.mark.parametrize(
    "env",
    [
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"},
        {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=["LANG=C", "POSIX", "latin-1"],
)
def test_a_poor_shell_shows_the_list_too(
    project: Path, environment: dict[str, str], agent: Script, env: dict[str, str]
) -> None:
    answer = punchlist(project, {**environment, **env}, "todos")
    assert answer.code == 0, answer
    assert b"Task" in answer.out
    if "PYTHONIOENCODING" not in env:
        assert acting(answer.out) == []


def test_no_terminal_escape_is_written_where_there_is_no_terminal(punchlist: Cli, agent: Script) -> None:
    for arguments in (("todos",), ("db", "check")):
        answer = punchlist(*arguments, env={"NO_COLOR": "", "TERM": "xterm-256color", "FORCE_COLOR": "1"})
        assert "\x1b" not in answer.stdout + answer.stderr
