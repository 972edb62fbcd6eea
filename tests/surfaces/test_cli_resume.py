"""`punchlist run --resume`: after kill -9, after an answer, after a turn that ended with something left."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from tests.conftest import Cli
from tests.faults.processes import Program, eventually

PLAN = "- calls: [{tool: create_todo, arguments: {items: [{title: Look}, {title: Write}]}}]\n"
HANGS = "- {text: never, delay: 600}\n"


def done(number: int) -> str:
    todo = f"{{{{ items[{number}].id }}}}"
    complete = f"{{tool: complete_todo, arguments: {{todoId: '{todo}', outcome: done}}}}"
    return f"- calls: [{{tool: list_directory}}, {complete}]\n"


LIST = "- calls: [{tool: list_todo, arguments: {status: all}}]\n"
FINISH = LIST + done(0) + done(1) + "- All done.\n"


def touch(name: str) -> str:
    """Appends a line, so that a call that was repeated leaves two."""
    return f"- calls: [{{tool: run_command, arguments: {{command: 'echo once >> {name}'}}}}]\n"


@pytest.fixture
def written(project: Path) -> Any:
    def write(name: str, text: str) -> str:
        (project / name).write_text(text)
        return f"rehearsal:{project / name}"

    return write


def history(punchlist: Cli) -> list[dict[str, Any]]:
    return json.loads(punchlist("tools", "history", "--json").stdout)  # type: ignore[no-any-return]


def report(done: Any) -> dict[str, Any]:
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.spec("T15", "C13")
def test_a_killed_run_goes_on_and_repeats_nothing_that_had_finished(
    project: Path, environment: dict[str, str], punchlist: Cli, written: Any
) -> None:
    first = written("first.yaml", PLAN + touch("marks") + HANGS)
    with Program(project, environment, "run", "Do it.", "--model", first, "--mode", "yolo") as program:
        eventually(lambda: [one["status"] for one in history(punchlist)].count("success") == 2, "both calls ended")
        program.process.send_signal(signal.SIGKILL)
    told = report(punchlist("run", "--resume", "--model", written("second.yaml", FINISH), "--mode", "yolo", "--json"))
    assert (told["reason"], told["text"], [todo["status"] for todo in told["todos"]]) == (
        "completed",
        "All done.",
        ["completed", "completed"],
    )
    # The replies before the crash count as well.
    assert told["iterations"] == 6
    assert (project / "marks").read_text() == "once\n"
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("T15")
def test_a_call_that_was_running_is_reported_as_interrupted_and_not_repeated(
    project: Path, environment: dict[str, str], punchlist: Cli, written: Any
) -> None:
    slow = "- calls: [{tool: run_command, arguments: {command: 'echo once >> marks; sleep 600'}}]\n"
    with Program(
        project, environment, "run", "Do it.", "--model", written("first.yaml", slow), "--mode", "yolo"
    ) as program:
        eventually((project / "marks").exists, "the command has begun")
        program.process.send_signal(signal.SIGKILL)
    told = report(punchlist("run", "--resume", "--model", written("second.yaml", "- I looked.\n"), "--json"))
    assert (told["reason"], told["text"]) == ("completed", "I looked.")
    (call,) = history(punchlist)
    assert (call["status"], call["error"]["code"]) == ("error", "interrupted")
    assert (project / "marks").read_text() == "once\n"


@pytest.mark.spec("T12", "T15")
def test_a_worker_that_was_in_the_middle_goes_on_in_its_own_turn(
    project: Path, environment: dict[str, str], punchlist: Cli, written: Any
) -> None:
    delegating = "- calls: [{tool: delegate, arguments: {type: coder, mission: Mark it.}}]\n"
    script = f"replies:\n{delegating}agents:\n  coder:\n{indent(touch('marks') + HANGS, '  ')}"
    with Program(
        project, environment, "run", "Do it.", "--model", written("first.yaml", script), "--mode", "yolo"
    ) as program:
        eventually(
            lambda: any(one["tool"] == "run_command" and one["status"] == "success" for one in history(punchlist)),
            "the worker has worked",
        )
        program.process.send_signal(signal.SIGKILL)
    script = "replies:\n- The worker says it is marked.\nagents:\n  coder:\n  - Marked.\n"
    told = report(punchlist("run", "--resume", "--model", written("second.yaml", script), "--mode", "yolo", "--json"))
    assert (told["reason"], told["text"]) == ("completed", "The worker says it is marked.")
    assert (project / "marks").read_text() == "once\n"
    turns = json.loads(punchlist("sessions", "show", "--json").stdout)["turns"]
    assert len(turns) == 2
    assert all(turn["endedAt"] for turn in turns)


@pytest.mark.spec("C9")
def test_a_turn_that_waits_for_approval_goes_on_after_the_answer(project: Path, punchlist: Cli, written: Any) -> None:
    script = written("first.yaml", PLAN + "- calls: [{tool: write_file, arguments: {path: x, content: hello}}]\n")
    waiting = punchlist("run", "Do it.", "--model", script, "--json")
    assert (report(waiting)["reason"], waiting.returncode) == ("waiting", 4)
    again = punchlist("run", "--resume", "--model", written("never.yaml", "- Not asked.\n"), "--json")
    assert (report(again)["reason"], report(again)["iterations"]) == ("waiting", 2)
    (asked,) = json.loads(punchlist("approvals", "--json").stdout)
    assert punchlist("approvals", "approve", asked["callId"]).returncode == 0
    told = report(punchlist("run", "--resume", "--model", written("second.yaml", FINISH), "--json"))
    assert (told["reason"], told["continuations"]) == ("completed", 0)
    assert (project / "x").read_text() == "hello"
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("T14")
def test_after_a_turn_that_has_ended_a_new_one_is_told_what_was_left(punchlist: Cli, written: Any) -> None:
    capped = report(
        punchlist(
            "run", "Do it.", "--model", written("a.yaml", PLAN + "- Soon.\n" * 5), "--json", "--max-iterations", "2"
        )
    )
    assert capped["reason"] == "capped"
    assert "Not finished:\n- Look\n- Write" in capped["text"]
    told = report(punchlist("run", "--resume", "--model", written("b.yaml", FINISH), "--json"))
    assert told["reason"] == "completed"
    assert [todo["title"] for todo in told["todos"]] == ["Look", "Write"]
    assert all(todo["copiedFrom"] for todo in told["todos"])
    assert told["turnId"] != capped["turnId"]
    shown = json.loads(punchlist("sessions", "show", "--json").stdout)
    assert "Do it." in json.dumps(shown)
    again = punchlist("run", "--resume", "--model", written("b.yaml", FINISH))
    assert again.returncode == 1
    assert "Nothing to resume" in again.stderr


@pytest.mark.spec("C16")
def test_two_processes_never_work_on_one_turn(
    project: Path, environment: dict[str, str], punchlist: Cli, written: Any
) -> None:
    script = written("first.yaml", PLAN + HANGS)
    with Program(project, environment, "run", "Do it.", "--model", script) as program:
        eventually(lambda: len(history(punchlist)) == 1, "the run has begun")
        for arguments in (["--resume"], ["--continue", "Something else."], []):
            refused = punchlist("run", *arguments, "--model", script)
            assert refused.returncode == 1
            assert "punchlist queue add" in refused.stderr
        assert json.loads(
            punchlist("run", "Else.", "--session", "other", "--model", written("o", "- Yes.\n"), "--json").stdout
        )
        program.process.send_signal(signal.SIGINT)
        assert program.end().code == 130


@pytest.mark.spec("S10")
def test_what_is_left_in_the_queue_begins_the_next_turn(punchlist: Cli, written: Any) -> None:
    punchlist("queue", "add", "And then this.")
    script = written("s.yaml", "- First.\n- Second.\n")
    done = punchlist("run", "--continue", "Do it.", "--model", script)
    assert done.stdout == "Second.\n"
    assert "next in the queue: And then this." in done.stderr
    assert json.loads(punchlist("queue", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--resume", "And this."], "takes no goal"),
        (["--file", "missing.txt"], "cannot be read"),
        (["--file", "f", "Goal"], "either GOAL or --file"),
        (["   "], "is empty"),
    ],
)
def test_a_goal_comes_from_one_place(punchlist: Cli, arguments: list[str], told: str) -> None:
    done = punchlist("run", *arguments, "--model", "rehearsal:none")
    assert done.returncode == 2
    assert told in done.stderr


def test_a_goal_can_come_from_a_file(punchlist: Cli, project: Path, written: Any) -> None:
    (project / "goal.md").write_text("# Do it\n\nAll of it.\n")
    told = report(punchlist("run", "--file", "goal.md", "--model", written("s.yaml", "- Yes.\n"), "--json"))
    assert told["reason"] == "completed"
    assert "All of it." in punchlist("sessions", "show").stdout
