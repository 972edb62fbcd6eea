"""`punchlist run --json-stream`: one event per line, as it happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.faults.processes import Program, eventually

from punchlist.agent.events import AgentEvent
from punchlist.surfaces.cli.run_stream import ENCODERS

PLAN = "- text: I plan.\n  calls: [{tool: create_todo, arguments: {items: [{title: Look}]}}]\n"
DONE = (
    "- calls: [{tool: list_directory}, "
    "{tool: complete_todo, arguments: {todoId: '{{ created[0].id }}', outcome: done}}]\n"
)
ENDLESS = "- calls: [{tool: run_command, arguments: {command: 'echo begun; sleep 60'}}]\n"


@pytest.fixture
def script(project: Path) -> Path:
    return project / "script.yaml"


def events(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines()]


@pytest.mark.spec("C13", "S9")
def test_every_event_is_a_line_and_the_last_is_the_result(punchlist: Cli, script: Path) -> None:
    script.write_text(PLAN + "- Soon.\n- calls: [{tool: read_file, arguments: {path: x}}]\n" + DONE + "- All done.\n")
    done = punchlist("run", "Do it.", "--model", f"rehearsal:{script}", "--json-stream")
    assert (done.returncode, done.stderr) == (0, "")
    told = events(done.stdout)
    assert told[0]["event"] == "turn_started"
    for name in ("text", "reply", "tool_call", "list", "continuation", "turn_ended"):
        assert name in [event["event"] for event in told]
    assert [event["text"] for event in told if event["event"] == "text"] == ["I plan.", "Soon.", "All done."]
    states = [event["status"] for event in told if event.get("tool") == "create_todo"]
    assert (states[0], states[-1]) == ("validating", "success")
    failed = next(event for event in told if event.get("tool") == "read_file" and event["status"] == "error")
    assert "No such file" in failed["error"]["message"]
    lists = [event["items"] for event in told if event["event"] == "list"]
    assert [[item["status"] for item in items] for items in lists] == [["pending"], ["completed"]]
    times = [datetime.fromisoformat(event["at"]) for event in told]
    assert times == sorted(times)
    assert {(event["agent"], event["turnId"]) for event in told[:-1]} == {("supervisor", told[-1]["turnId"])}
    script.write_text(PLAN + DONE + "- All done.\n")
    plain = json.loads(punchlist("run", "Do it.", "--model", f"rehearsal:{script}", "--json").stdout)
    assert told[-1]["event"] == "result"
    assert set(told[-1]) == {*plain, "event", "at"}
    assert (told[-1]["reason"], told[-1]["text"]) == ("completed", "All done.")


@pytest.mark.spec("S8", "S9")
def test_a_line_is_there_when_it_happens(project: Path, environment: dict[str, str], script: Path) -> None:
    script.write_text(ENDLESS)
    arguments = ("run", "Do it.", "--model", f"rehearsal:{script}", "--mode", "yolo", "--json-stream")
    with Program(project, environment, *arguments) as program:
        program.wait_for('"event": "tool_output"', "begun")
        program.process.send_signal(signal.SIGINT)
        answer = program.end()
    assert answer.code == 130
    told = events(answer.out.decode())
    assert [event["event"] for event in told[-2:]] == ["turn_ended", "result"]
    assert told[-1]["reason"] == "cancelled"


@pytest.mark.spec("C14")
def test_a_reader_that_leaves_ends_the_turn_in_good_order(
    project: Path, environment: dict[str, str], punchlist: Cli, script: Path
) -> None:
    script.write_text(ENDLESS.replace("sleep 60", "while sleep 0.1; do echo more; done"))
    source, sink = os.pipe()
    command = [sys.executable, "-m", "punchlist", "run", "Do it.", "--model", f"rehearsal:{script}"]
    with subprocess.Popen(
        [*command, "--mode", "yolo", "--json-stream"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(sink)
        with os.fdopen(source) as reader:
            assert json.loads(reader.readline())["event"] == "turn_started"
        eventually(lambda: process.poll() is not None, "the run ends")
        assert process.stderr is not None
        said = process.stderr.read().splitlines()
        assert said[0] == "punchlist: Ended as cancelled: the reader of stdout has closed it."
        assert said[1:] in ([], ["punchlist: `punchlist run --resume` continues from here."])
    assert process.returncode == 130
    history = json.loads(punchlist("tools", "history", "--json").stdout)
    assert {call["status"] for call in history} <= {"cancelled", "error"}
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("C14")
def test_a_reader_that_does_not_read_does_not_delay_ctrl_c(
    project: Path, environment: dict[str, str], punchlist: Cli, script: Path
) -> None:
    # More than a pipe holds: a write of the program would block for ever.
    script.write_text(ENDLESS.replace("echo begun", "yes | head -c 500000; touch printed"))
    command = [sys.executable, "-m", "punchlist", "run", "Do it.", "--model", f"rehearsal:{script}"]
    with subprocess.Popen(
        [*command, "--mode", "yolo", "--json-stream"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        eventually((project / "printed").exists, "the command prints")
        process.send_signal(signal.SIGINT)
        eventually(lambda: process.poll() is not None, "the run ends")
    assert process.returncode == 130
    assert [call["status"] for call in json.loads(punchlist("tools", "history", "--json").stdout)] == ["cancelled"]


def test_a_full_disk_ends_the_turn_and_is_named(punchlist: Cli, script: Path, environment: dict[str, str]) -> None:
    script.write_text(ENDLESS)
    command = [sys.executable, "-m", "punchlist", "run", "Do it.", "--model", f"rehearsal:{script}", "--json-stream"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "--mode", "yolo"],
            cwd=script.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 130
    assert "stdout cannot be written (No space left on device)" in done.stderr


def test_an_error_is_a_line_too(punchlist: Cli) -> None:
    done = punchlist("run", "Do it.", "--model", "rehearsal:missing.yaml", "--json-stream")
    assert done.returncode == 1
    (told,) = events(done.stdout)
    assert told["event"] == "error"
    assert "missing.yaml" in told["error"]["message"]


def test_both_kinds_of_json_are_refused(punchlist: Cli) -> None:
    done = punchlist("run", "Do it.", "--json", "--json-stream")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: Invalid value for --json-stream: prints the result of --json as its last line" in done.stderr


def test_every_kind_of_event_has_an_encoder() -> None:
    kinds, waiting = set[type[AgentEvent]](), [AgentEvent]
    while waiting:
        found = waiting.pop().__subclasses__()
        kinds.update(found)
        waiting += found
    # A data class with slots replaces the class that it decorates.
    assert {kind.__name__ for kind in kinds} == {kind.__name__ for kind in ENCODERS}
