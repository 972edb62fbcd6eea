"""The benchmark of finished tasks: its tasks are sound, its arms differ as they should, and its limits hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.finish.arms import arms
from bench.finish.command import QUICK_TASKS
from bench.finish.faults import SETS
from bench.finish.run import run_scripted
from bench.finish.task import Task, load_task, load_tasks
from tests.conftest import ROOT


def test_there_are_thirty_tasks_of_three_to_twelve_steps() -> None:
    tasks = load_tasks()
    assert len(tasks) == 30
    assert {3, 12} <= {len(task.steps) for task in tasks} <= set(range(3, 13))


@pytest.mark.parametrize("name", [task.name for task in load_tasks()])
def test_hidden_tests_fail_before_the_work_and_pass_after_it(name: str, tmp_path: Path) -> None:
    [task] = load_tasks([name])
    task.prepare(tmp_path)
    assert not any(task.passed(tmp_path))
    outcome = run_scripted(task, arms()["bare"], SETS["none"], 0)
    assert (outcome.passed, outcome.claimed) == (outcome.steps, True)


@pytest.mark.spec("V6")
def test_each_part_of_the_list_finishes_more_and_claims_less(tmp_path: Path) -> None:
    found = _finish(tmp_path, "--quick")
    whole = {(each["faults"], each["arm"]): each["whole"][0] for each in found["summaries"]}
    false = {(each["faults"], each["arm"]): each["false_done"][0] for each in found["summaries"]}
    assert {whole["none", arm] for arm in arms()} == {len(QUICK_TASKS)}
    assert whole["early", "bare"] < whole["early", "continue"] == whole["early", "drive"] == len(QUICK_TASKS)
    assert whole["mixed", "bare"] < whole["mixed", "verify"] == whole["mixed", "drive"] == len(QUICK_TASKS)
    assert false["mixed", "verify"] == false["mixed", "drive"] == 0 < false["mixed", "continue"]
    assert all(figure["within"] for figure in found["figures"])
    assert len(found["figures"]) == 6


@pytest.mark.spec("V6")
def test_a_seed_gives_every_arm_the_same_faults() -> None:
    [task] = load_tasks(["service_config"])
    first, again = (run_scripted(task, arms()["bare"], SETS["all"], 3) for _ in range(2))
    assert (first.passed, first.tokens, first.reason) == (again.passed, again.tokens, again.reason)


@pytest.mark.spec("V6")
def test_a_false_claim_counts_against_the_loop_that_believed_it(tmp_path: Path) -> None:
    impossible = _impossible(tmp_path)
    outcome = run_scripted(impossible, arms()["bare"], SETS["none"], 0)
    assert (outcome.claimed, outcome.whole, outcome.false_done) == (True, False, True)


def test_an_unknown_task_or_arm_is_named() -> None:
    for option, word in (("--tasks", "nope"), ("--arms", "nope"), ("--faults", "nope")):
        done = _bench(option, word)
        assert done.returncode == 2
        assert "nope" in done.stderr
        assert "hoose from" in done.stderr


def _impossible(folder: Path) -> Task:
    """A task whose reference work does not do what its hidden test wants."""
    (folder / "files").mkdir()
    (folder / "instruction.md").write_text("Write a.txt with the word right.")
    (folder / "solution.yaml").write_text("- title: Write a.txt\n  work:\n    - write: {a.txt: wrong}\n")
    (folder / "tests.py").write_text("def step_1(ws):\n    assert ws.text('a.txt') == 'right'\n")
    return load_task(folder)


def _finish(folder: Path, *options: str) -> dict[str, Any]:
    results = folder / "finish.json"
    done = _bench(*options, "--json", str(results))
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(results.read_text())
    return found


def _bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "finish", *options]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=100)
