"""A person approves a call whose worker was killed: the worker that took the run over runs it, once (M9)."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.faults.mission_project import delegated, ended, marks, mission_project, results, started, statuses
from tests.faults.mission_worker import Life, Nursery, Task, begin, until
from tests.faults.processes import module

from punchlist.app import Services
from punchlist.runs.lifecycle import RunStatus
from punchlist.views.health import has_worker

WORDS: Final = """
scenes:
  - agent: coder
    when: "Measure"
    replies:
      - calls:
          - tool: run_command
            arguments: {command: "echo begun >> marks; sleep 1; echo over >> marks"}
      - text: Measured.
"""


def inbox(task: Task, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        module("punchlist", "inbox", *arguments),
        cwd=task.folder,
        env={**os.environ, "HOME": task.home, "PUNCHLIST_DATABASE_URL": task.database},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def waits(house: Services, life: Life) -> None:
    """The run waits, for its question."""
    until(lambda: [run.status for run in house.runs.list()] == [RunStatus.WAITING], lambda: life.said)
    until(lambda: len(house.approvals.waiting()) == 1, lambda: life.said)


@pytest.mark.spec("M9", "I1", "I3")
@pytest.mark.parametrize("action", ["approve", "modify", "deny"])
@pytest.mark.parametrize("taken_over", ["before the answer", "after the answer"])
def test_an_answer_to_a_call_of_a_killed_worker_is_carried_out_by_the_worker_that_takes_over(
    nursery: Nursery, tmp_path: Path, database: str, action: str, taken_over: str
) -> None:
    task = mission_project(tmp_path / "project", database, WORDS, until_idle=False, mode="default")
    house = task.house()
    begin(house, cycles=False)
    first = started(nursery, task)
    (run,) = delegated(house, "Measure")
    waits(house, first)
    first.end()
    assert not has_worker(house.store)
    if taken_over == "before the answer":
        second = started(nursery, task)
        until(lambda: "recovered 1 run of worker" in second.said, lambda: second.said)
        waits(house, second)
    details = [json.dumps({"command": "echo changed >> marks"})] if action == "modify" else []
    answered = inbox(task, action, "1", *details)
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout == "Answered. A worker continues its run.\n"
    if taken_over == "after the answer":
        assert marks(task) == []
        second = started(nursery, task)
    until(partial(ended, house, [run]), lambda: second.said)
    assert statuses(house, [run]) == {"done": 1}, second.said
    assert results(house) == ["Measured."]
    assert marks(task) == {"approve": ["begun", "over"], "modify": ["changed"], "deny": []}[action]
    house.store.close()
