"""The program against a model server on loopback, as a person at a terminal sees it.

How turns end over each wire stands in `test_reasons_over_http.py`, what bad replies do in
`test_bad_replies_over_http.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.contract.scripted_http import Answer, ScriptedServer
from tests.journeys.over_http import MARKS, NOTES, SAYS

WRITES = Answer("", [("write_file", {"path": "x.txt", "content": "x"}), *MARKS.calls])


@pytest.mark.spec("C2", "C13", "C15")
def test_people_see_an_agent_that_stops_early_finish_its_list(punchlist: Cli, project: Path) -> None:
    with ScriptedServer([NOTES, Answer("I'll continue…"), WRITES, SAYS]) as server:
        flags = ("--model", "anthropic:m", "--lists", "checklist", "--mode", "yolo")
        done = punchlist("run", "Write x.", *flags, env=server.environment())
    assert (done.returncode, done.stdout) == (0, "It is written.\n")
    assert (project / "x.txt").read_text() == "x"
    told = [
        "with anthropic:m",
        "I note it down.",
        "stopped early; continued 1 of 10 times",
        "✓ write_file",
        "completed",
    ]
    found = [done.stderr.find(words) for words in told]
    assert -1 not in found, done.stderr
    assert found == sorted(found)
