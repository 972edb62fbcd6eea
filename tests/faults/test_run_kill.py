"""`kill -9` of an agent at work, again and again: it goes on, and does nothing twice (T15, C13)."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import Cli
from tests.contract.scripted_http import Answer, Asked, ScriptedServer
from tests.faults.processes import PATIENCE, Program, eventually, spin

MODEL: Final = ("--model", "openai-chat:m", "--mode", "yolo", "--json", "--max-iterations", "5000")
_OPEN: Final = re.compile(r"(\d+)\. \[.\] t\d")


def problems(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a provider would refuse: calls without exactly one result, right after them."""
    found: list[str] = []
    open_calls: list[str] = []
    for message in messages:
        if message["role"] != "tool":
            found += [f"{call} has no result" for call in open_calls]
            open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        elif message["tool_call_id"] in open_calls:
            open_calls.remove(message["tool_call_id"])
        else:
            found.append(f"{message['tool_call_id']} has a result too many")
    return found + [f"{call} has no result" for call in open_calls]


class Planner(ScriptedServer):
    """Plans, has marks made and workers make them, then clears its list. No two commands it wants are the same."""

    def __init__(self, seed: int, marks: int) -> None:
        super().__init__([])
        self.problems: list[str] = []
        self._choice = random.Random(seed)
        self._wanted = marks
        self._given = 0

    def answer_to(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            said = asked.body["messages"]
            self.problems += problems(said)
            if '"delegate"' not in json.dumps(asked.body["tools"]):
                called = sum(len(message.get("tool_calls") or ()) for message in said)
                return Answer("Marked.") if called >= 2 else self._marks()
            state = str(said[-1]["content"])
            if "Plan:" not in state:
                return Answer("", [("create_todo", {"items": [{"title": f"t{n}"} for n in range(3)]})])
            if not (left := _OPEN.findall(state)):
                return Answer("All done.")
            if self._given < self._wanted:
                return self._marks() if self._choice.random() < 0.7 else self._missions()
            return Answer("", [("complete_todo", {"todoId": number, "outcome": "done"}) for number in left])

    def _names(self) -> list[str]:
        names = [f"{len(self.asked)}.{n}" for n in range(self._choice.randint(1, 3))]
        self._given += len(names)
        return names

    def _marks(self) -> Answer:
        return Answer("", [("run_command", {"command": f"echo {name} >> marks"}) for name in self._names()])

    def _missions(self) -> Answer:
        return Answer("", [("delegate", {"type": "coder", "mission": f"Mark {name}."}) for name in self._names()])


@pytest.mark.spec("T15", "T12", "C13")
@pytest.mark.parametrize(
    ("kills", "marks"), [(6, 20), pytest.param(200, 400, marks=pytest.mark.soak)], ids=["seconds", "full"]
)
def test_an_agent_that_is_killed_again_and_again_does_nothing_twice(
    project: Path, environment: dict[str, str], punchlist: Cli, kills: int, marks: int
) -> None:
    moments = random.Random(kills)
    with Planner(7, marks) as server:
        env = {**environment, **server.environment()}
        for life in range(kills):
            before = len(server.asked)
            goal = "--resume" if life else "Do it."
            with Program(project, env, "run", goal, *MODEL) as program:

                def so_far(wanted: int = before + moments.randint(2, 4), run: Program = program) -> bool:
                    return len(server.asked) >= wanted or run.process.poll() is not None

                eventually(so_far, "the agent works")
                # To some point inside of what follows.
                spin(moments.uniform(0, 0.08))
                program.process.kill()
                program.process.wait(PATIENCE)
            if program.process.returncode == 0:
                break
        else:
            with Program(project, env, "run", "--resume", *MODEL) as program:
                ended = program.end()
                # It may have been killed when its turn had ended, and only the program had not.
                assert ended.code == 0 or b"was completed" in ended.err, program.output
        assert server.problems == []
    made = (project / "marks").read_text().split()
    assert sorted(made) == sorted(set(made))
    assert punchlist("db", "check").returncode == 0
    turns = json.loads(punchlist("sessions", "show", "--json").stdout)["turns"]
    assert [turn["id"] for turn in turns if not turn["endedAt"]] == []


@pytest.mark.spec("C13", "C15")
def test_an_agent_goes_on_when_nobody_can_read_what_it_tells(project: Path, environment: dict[str, str]) -> None:
    (project / "s.yaml").write_text("- calls: [{tool: list_directory, arguments: {path: .}}]\n- Done.\n")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "punchlist", "run", "Do it.", "--model", "rehearsal:s.yaml"],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )
    assert done.stdout == b"Done.\n"


@pytest.mark.spec("C6")
@pytest.mark.parametrize("option", ["--max-seconds", "--max-cost"])
def test_a_limit_that_is_no_number_is_refused(punchlist: Cli, project: Path, option: str) -> None:
    (project / "s.yaml").write_text("- Done.\n")
    done = punchlist("run", "Do it.", "--model", "rehearsal:s.yaml", option, "nan")
    assert (done.returncode, option in done.stderr) == (2, True)
