"""The program against a model server on loopback, over each wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.contract.scripted_http import Answer, ScriptedServer

CHECKLIST = [{"content": "Write x", "activeForm": "Writing x", "status": "pending"}]
DONE = [{**CHECKLIST[0], "status": "completed"}]
WORK: Sequence[Answer] = [
    Answer("I note it down.", [("TodoWrite", {"todos": CHECKLIST})]),
    Answer("I'll continue…"),
    Answer("", [("write_file", {"path": "x.txt", "content": "x"}), ("TodoWrite", {"todos": DONE})]),
    Answer("It is written."),
]


@pytest.mark.spec("C2", "C13")
@pytest.mark.parametrize("model", ["openai-chat:m", "openai:m", "anthropic:m"])
def test_an_agent_that_stops_early_finishes_its_list(punchlist: Cli, project: Path, model: str) -> None:
    with ScriptedServer(WORK) as server:
        done = punchlist("run", "Write x.", "--model", model, "--mode", "yolo", "--json", env=server.environment())
        told = json.loads(done.stdout)
        assert (done.returncode, told["reason"], told["continuations"]) == (0, "completed", 1)
        assert told["text"] == "It is written."
        assert told["usage"]["inputTokens"] == sum(answer.tokens[0] for answer in WORK)
        assert (project / "x.txt").read_text() == "x"
        assert "1 item is not done yet" in json.dumps(server.asked[2].body)


@pytest.mark.parametrize(
    ("answer", "told"),
    [(Answer(status=401), "key"), (Answer(status=404), "m"), (Answer(status=400), "It went wrong")],
    ids=["a wrong key", "a wrong name", "a wrong request"],
)
def test_what_a_model_refuses_is_said_in_one_line(punchlist: Cli, answer: Answer, told: str) -> None:
    with ScriptedServer([answer]) as server:
        done = punchlist("run", "Do it.", "--model", "openai-chat:m", env=server.environment())
    assert done.returncode == 1
    assert told in done.stderr.strip().splitlines()[-1]
