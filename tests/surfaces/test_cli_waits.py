"""A run that has to wait: for a person, an event, a time, an approval (C9, C10)."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.faults.processes import Program, eventually

LOOK = "{tool: list_directory}"
COMPLETE = (
    f"- calls: [{LOOK}, {{tool: complete_todo, arguments: {{todoId: '{{{{ items[0].id }}}}', outcome: done}}}}]\n"
)
FINISH = f"- calls: [{{tool: list_todo}}]\n{COMPLETE}- All done.\n"


def planned(need: str) -> str:
    items = f"[{{title: Look}}, {{title: Decide, blockedBy: [{need}]}}]"
    first = COMPLETE.replace("items[0]", "created[0]")
    return f"- calls: [{{tool: create_todo, arguments: {{items: {items}}}}}]\n{first}- I have to wait.\n"


@pytest.fixture
def written(project: Path) -> Any:
    def write(name: str, text: str) -> str:
        (project / name).write_text(text)
        return f"rehearsal:{project / name}"

    return write


def told(done: Any) -> Any:
    return json.loads(done.stdout)


@pytest.mark.spec("C10", "C13", "T15")
def test_a_question_to_a_person_ends_the_turn_as_waiting_and_the_answer_lets_it_go_on(
    punchlist: Cli, written: Any
) -> None:
    script = written("a.yaml", planned("{person: 'Which region?'}"))
    waiting = punchlist("run", "Do it.", "--model", script, "--json")
    assert (told(waiting)["reason"], waiting.returncode) == ("waiting", 4)
    assert told(waiting)["todos"][1]["waitsFor"] == ["an answer to “Which region?”"]
    assert "Decide (waiting for an answer to “Which region?”)" in waiting.stderr
    never = written("never.yaml", "- Not asked.\n")
    again = told(punchlist("run", "--resume", "--model", never, "--json"))
    assert (again["reason"], again["iterations"]) == ("waiting", 3)
    (asked,) = told(punchlist("answer", "--json"))
    assert punchlist("answer", asked["id"], "eu-west").returncode == 0
    done = told(punchlist("run", "--resume", "--model", written("b.yaml", FINISH), "--json"))
    # It was not the agent who stopped early: nothing of the counter is used up.
    assert (done["reason"], done["continuations"]) == ("completed", 0)
    assert done["turnId"] == told(waiting)["turnId"]
    said = punchlist("sessions", "show", "--json").stdout
    assert "eu-west" in said
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("C10")
def test_a_run_can_stay_until_an_event_has_happened(
    project: Path, environment: dict[str, str], punchlist: Cli, written: Any
) -> None:
    script = written("a.yaml", planned("{event: deployed}") + FINISH)
    with Program(project, environment, "run", "Do it.", "--model", script, "--json", "--wait") as program:
        eventually(lambda: "deployed" in punchlist("wake").stdout, "it waits")
        punchlist("wake", "deployed")
        answer = program.end()
    assert (json.loads(answer.out)["reason"], answer.code) == ("completed", 0)


@pytest.mark.spec("C10")
def test_a_run_can_stay_until_its_time_has_come(punchlist: Cli, written: Any) -> None:
    at = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    done = punchlist(
        "run", "Do it.", "--model", written("a.yaml", planned(f"{{time: '{at}'}}") + FINISH), "--json", "--wait"
    )
    assert told(done)["reason"] == "completed"
    assert datetime.now(UTC) >= datetime.fromisoformat(at)


@pytest.mark.spec("C9")
def test_a_run_can_stay_until_a_call_is_approved_elsewhere(
    project: Path, environment: dict[str, str], punchlist: Cli, written: Any
) -> None:
    script = written("a.yaml", "- calls: [{tool: write_file, arguments: {path: x, content: hello}}]\n- Written.\n")
    with Program(project, environment, "run", "Do it.", "--model", script, "--json", "--wait") as program:
        eventually(lambda: "write_file" in punchlist("approvals").stdout, "it asks")
        (asked,) = told(punchlist("approvals", "--json"))
        punchlist("approvals", "approve", asked["callId"])
        answer = program.end()
    assert json.loads(answer.out)["text"] == "Written."
    assert (project / "x").read_text() == "hello"


@pytest.mark.spec("C10", "C14")
def test_ctrl_c_ends_the_waiting_and_leaves_the_turn_as_it_is(
    project: Path, environment: dict[str, str], punchlist: Cli, written: Any
) -> None:
    script = written("a.yaml", planned("{event: never}"))
    with Program(project, environment, "run", "Do it.", "--model", script, "--json", "--wait") as program:
        eventually(lambda: "never" in punchlist("wake").stdout, "it waits")
        program.process.send_signal(signal.SIGINT)
        answer = program.end()
    assert (json.loads(answer.out)["reason"], answer.code) == ("waiting", 4)
    assert punchlist("wake", "never").returncode == 0
    done = told(punchlist("run", "--resume", "--model", written("b.yaml", FINISH), "--json"))
    assert done["reason"] == "completed"


@pytest.mark.spec("C12", "C3")
def test_what_waits_for_another_todo_comes_after_it(punchlist: Cli, written: Any) -> None:
    items = "[{title: Ship, blockedBy: [Build]}, {title: Build}]"
    plan = f"- calls: [{{tool: create_todo, arguments: {{items: {items}}}}}]\n"
    script = written("a.yaml", plan + "- Soon.\n" * 5)
    punchlist("run", "Do it.", "--model", script)
    said = punchlist("sessions", "show", "--json").stdout
    assert "The next item is: “Build”" in json.dumps(json.loads(said), ensure_ascii=False)
