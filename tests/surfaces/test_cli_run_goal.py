"""`punchlist run --until` and `--drive`: acceptance criteria, and one item at a time."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli

JUDGE = "agents:\n  judge:\n    - calls: [{{tool: give_verdict, arguments: {{verdict: {0}, missing: '{1}'}}}}]\n"
WRITES = "  - calls: [{tool: write_file, arguments: {path: x.txt, content: x}}]\n"


@pytest.fixture
def run(punchlist: Cli, project: Path) -> Any:
    def call(script: str, *arguments: str) -> dict[str, Any]:
        (project / "script.yaml").write_text(script)
        done = punchlist("run", *arguments, "--model", "rehearsal:script.yaml", "--mode", "auto-edit", "--json")
        return {**json.loads(done.stdout), "code": done.returncode}

    return call


@pytest.mark.spec("V3")
def test_a_command_of_the_person_decides_first_and_sends_the_agent_back(run: Any) -> None:
    script = "replies:\n  - Done.\n" + WRITES + "  - Now it is.\n" + JUDGE.format("met", "")
    done = run(script, "Write x.", "--until", "there is a file `test -f x.txt`")
    assert (done["reason"], done["code"], done["continuations"]) == ("completed", 0, 1)


@pytest.mark.spec("V3")
@pytest.mark.parametrize(
    ("verdict", "why"),
    [("unachievable", "the goal cannot be met: no README at all"), ("not_yet", "the verdict did not change")],
)
def test_a_goal_that_is_not_met_ends_as_open_with_the_verdict(run: Any, verdict: str, why: str) -> None:
    script = "replies:\n  - Done.\n  - Done.\n  - Done.\n" + JUDGE.format(verdict, "no README\n\n      at all")
    done = run(script, "Write it.", "--until", "README explains it")
    assert (done["reason"], done["code"]) == ("open", 3)
    assert why in done["text"]
    assert "no README" in done["text"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--until", "x"), "--until: needs a goal"),
        (("--resume", "--until", "x"), "--until: needs a goal"),
        (("Do it.", "--until", " "), "--until: is empty"),
        (("Do it.", "--until", "x" * 10_001), "--until: must be 0 to 10000 characters"),
    ],
)
def test_wrong_criteria_are_refused(punchlist: Cli, arguments: tuple[str, ...], said: str) -> None:
    done = punchlist("run", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.spec("V3")
@pytest.mark.parametrize(
    ("typed", "told"), [("\n", "1. a.txt exists"), ("n\n", "a and b"), ("e\nonly a\n\n\n", "only a")]
)
def test_at_a_terminal_the_person_accepts_or_edits_what_the_model_drafts(
    project: Path, environment: dict[str, str], punchlist: Cli, typed: str, told: str
) -> None:
    drafted = '  - "1. a.txt exists\\n2. b.txt exists"\n'
    (project / "script.yaml").write_text(f"replies:\n{drafted}  - Done.\n" + JUDGE.format("met", ""))
    source, inside = pty.openpty()
    command = [sys.executable, "-m", "punchlist", "run", "Do it.", "--until", "a and b", "--model"]
    variables = {name: value for name, value in environment.items() if name not in ("EDITOR", "VISUAL")}
    with subprocess.Popen(
        [*command, "rehearsal:script.yaml"],
        cwd=project,
        env={**variables, "TERM": "xterm"},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    ) as process:
        os.close(inside)
        shown = _answer(source, typed)
        assert process.wait(60) == 0, shown
    assert "2. b.txt exists" in shown
    # What the agent is told is stored with its turn.
    assert told in punchlist("sessions", "export").stdout


def _answer(source: int, typed: str) -> str:
    """Type each line when it is asked for; returns all that was shown."""
    shown, waiting = "", typed.splitlines(keepends=True)
    guard = threading.Timer(60, os.close, [source])
    guard.start()
    asked = 0
    while True:
        try:
            part = os.read(source, 65_536)
        except OSError:
            break
        if not part:
            break
        shown += part.decode()
        now = shown.count("Enter accepts") + shown.count("An empty line ends it.")
        if now > asked:
            # After an edit, the lines of the list are read without another question.
            many = 2 if "An empty line ends it." in shown and asked == 1 else 1
            for line in waiting[:many]:
                os.write(source, line.encode())
            del waiting[:many]
            asked = now
    guard.cancel()
    return shown


@pytest.mark.spec("V5")
def test_drive_gives_the_agent_one_item_at_a_time(run: Any, punchlist: Cli) -> None:
    script = (
        "- calls: [{tool: create_todo, arguments: {items: [{title: Look}, {title: Find}]}}]\n"
        '- calls: [{tool: list_directory}, {tool: finish_item, arguments: {outcome: "It is\\n\\nhere."}}]\n'
        "- calls: [{tool: find_files, arguments: {pattern: '*'}}, {tool: finish_item, arguments: {outcome: found}}]\n"
        "- All done.\n"
    )
    done = run(script, "Do it.", "--drive")
    assert (done["reason"], done["text"]) == ("completed", "All done.")
    assert [(item["title"], item["status"], item["mark"]) for item in done["todos"]] == [
        ("Look", "completed", "evidenced"),
        ("Find", "completed", "evidenced"),
    ]
    shown = punchlist("todos").stdout
    assert "It is here." in shown
    assert "x0a" not in shown
