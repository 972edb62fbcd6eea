"""What people want of a run that a worker has in hand, said from another process, on both databases (M11)."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.faults.mission_project import delegated, ended, marks, mission_project, results, started, statuses
from tests.faults.mission_worker import PERSON, Life, Nursery, Task, begin, until

from punchlist.app import Services
from punchlist.conversations.model import Scope
from punchlist.runs.model import Run
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome

SOON: Final = 2.0
"""Seconds within which a pause is there."""
HERE: Final = Scope("cli", PERSON)
WORDS: Final = """
scenes:
  - agent: coder
    when: "Turn left"
    replies:
      - calls: [{tool: run_command, arguments: {command: echo left >> marks}}]
      - text: I went left.
  - agent: coder
    when: "Turn right"
    replies:
      - {delay: 3, text: I went right.}
  - agent: coder
    when: "Think"
    replies:
      - calls: [{tool: run_command, arguments: {command: echo first >> marks}}]
      - {delay: 1.5, calls: [{tool: run_command, arguments: {command: echo second >> marks}}]}
      - text: I have thought.
  - agent: coder
    when: "Wait"
    replies:
      - calls: [{tool: run_command, arguments: {command: echo begun >> marks; sleep 60; echo over >> marks}}]
      - text: I have waited.
"""


@pytest.fixture
def task(tmp_path: Path, database: str) -> Task:
    return mission_project(tmp_path / "project", database, WORDS, until_idle=False)


@pytest.fixture
def house(task: Task) -> Services:
    made = task.house()
    begin(made, cycles=False)
    return made


def at(house: Services, run: Run, status: str, life: Life, within: float = 20.0) -> float:
    """Seconds until a run has come to a state."""
    return until(lambda: house.runs.get(run.id).status == status, lambda: f"{run.id} is {status}\n{life.said}", within)


def asked(house: Services, run: Run) -> list[str]:
    """What the agent was told in the run's chat."""
    said = house.conversations.messages(run.conversation_id)
    return [one.content for one in said if (one.role, one.kind) == ("user", "text")]


@pytest.mark.spec("M11")
def test_a_run_is_paused_at_once_and_goes_on_where_it_was(nursery: Nursery, task: Task, house: Services) -> None:
    life = started(nursery, task)
    (run,) = delegated(house, "Think")
    until(lambda: marks(task) == ["first"], lambda: life.said)
    house.runs.pause(HERE, run.id)
    took = at(house, run, "paused", life, SOON)
    print(f"paused after {took:.2f} s")
    # Nothing of it goes on, not even in another life.
    assert life.end(signal.SIGTERM) == 0, life.said
    other = started(nursery, task)
    until(lambda: house.runs.get(run.id).attempts == 2, lambda: other.said)
    assert (house.runs.get(run.id).status, marks(task)) == ("paused", ["first"])
    house.runs.resume(HERE, run.id)
    until(partial(ended, house, [run]), lambda: other.said)
    assert statuses(house, [run]) == {"done": 1}
    assert (results(house), marks(task)) == (["I have thought."], ["first", "second"])
    assert asked(house, run) == ["Think"]


@pytest.mark.spec("M11")
def test_what_a_person_says_reaches_the_agent_once(nursery: Nursery, task: Task, house: Services) -> None:
    life = started(nursery, task)
    (run,) = delegated(house, "Wait")
    until(lambda: marks(task) == ["begun"], lambda: life.said)
    house.runs.redirect(HERE, run.id, "Turn right")
    until(lambda: "Turn right" in asked(house, run), lambda: life.said)
    # Another word while the agent is at the first one.
    house.runs.redirect(HERE, run.id, "Turn left")
    until(partial(ended, house, [run]), lambda: life.said)
    assert statuses(house, [run]) == {"done": 1}, life.said
    assert asked(house, run) == ["Wait", "Turn right", "Turn left"]
    assert (results(house), marks(task)) == (["I went left."], ["begun", "left"])
    assert house.runs.get(run.id).message is None


@pytest.mark.spec("M11")
def test_what_a_person_says_to_a_run_whose_worker_dies_reaches_the_agent_once(
    nursery: Nursery, task: Task, house: Services
) -> None:
    life = started(nursery, task)
    (run,) = delegated(house, "Wait")
    until(lambda: marks(task) == ["begun"], lambda: life.said)
    house.runs.redirect(HERE, run.id, "Turn right")
    until(lambda: "Turn right" in asked(house, run), lambda: life.said)
    life.end()
    house.runs.redirect(HERE, run.id, "Turn left")
    other = started(nursery, task)
    until(partial(ended, house, [run]), lambda: other.said)
    assert statuses(house, [run]) == {"done": 1}, other.said
    assert asked(house, run) == ["Wait", "Turn right", "Turn left"]
    assert marks(task) == ["begun", "left"]


@pytest.mark.spec("M11", "M9")
def test_a_run_that_waits_for_an_approval_hears_what_a_person_says_instead(
    nursery: Nursery, tmp_path: Path, database: str
) -> None:
    task = mission_project(tmp_path / "project", database, WORDS, until_idle=False, mode="default")
    house = task.house()
    begin(house, cycles=False)
    life = started(nursery, task)
    (run,) = delegated(house, "Wait")
    at(house, run, "waiting", life)
    house.runs.redirect(HERE, run.id, "Turn left")
    # The first question is withdrawn; what the message leads to is asked for anew.
    until(lambda: "Turn left" in asked(house, run), lambda: life.said)
    at(house, run, "waiting", life)
    until(lambda: len(house.approvals.waiting(run.conversation_id)) == 1, lambda: life.said)
    (question,) = house.approvals.waiting(run.conversation_id)
    # Whoever answers, and whoever works then: the question outlives its worker.
    life.end()
    house.approvals.answer(question.call_id, ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, PERSON))
    other = started(nursery, task)
    until(partial(ended, house, [run]), lambda: other.said)
    assert statuses(house, [run]) == {"done": 1}, other.said
    assert (results(house), marks(task)) == (["I went left."], ["left"])
    assert asked(house, run) == ["Wait", "Turn left"]


@pytest.mark.spec("M11")
def test_a_run_that_is_stopped_ends_with_its_turn_and_its_processes(
    nursery: Nursery, task: Task, house: Services
) -> None:
    life = started(nursery, task)
    (run,) = delegated(house, "Wait")
    until(lambda: marks(task) == ["begun"], lambda: life.said)
    house.runs.stop(HERE, run.id, "not needed any more")
    took = at(house, run, "stopped", life, 5)
    print(f"stopped after {took:.2f} s")
    assert house.runs.get(run.id).why == "not needed any more"
    assert [turn.open for turn in house.conversations.turns(run.conversation_id)] == [False]
    until(lambda: not _sleepers(task), "no process is left", 5)
    # The worker goes on with other things.
    (more,) = delegated(house, "Turn left")
    until(partial(ended, house, [more]), lambda: life.said)
    assert statuses(house, [more]) == {"done": 1}


def _sleepers(task: Task) -> list[Path]:
    """Processes of the command that are left, by the folder they work in."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"sleep\x0060"):
                found += [entry] if (entry / "cwd").readlink() == Path(task.folder) else []
        except OSError:
            continue
    return found


@pytest.mark.spec("M9", "M11")
def test_a_worker_that_is_told_to_end_leaves_its_runs_to_the_next(
    nursery: Nursery, task: Task, house: Services
) -> None:
    life = started(nursery, task)
    runs = delegated(house, "Think", "Think", "Think")
    until(lambda: marks(task).count("first") == 3, lambda: life.said)
    assert life.end(signal.SIGTERM) == 0, life.said
    assert [house.runs.get(run.id).status for run in runs] == ["running"] * 3
    other = started(nursery, task)
    until(partial(ended, house, runs), lambda: other.said)
    assert statuses(house, runs) == {"done": 3}, other.said
    assert sorted(marks(task)) == ["first"] * 3 + ["second"] * 3


FAILING: Final = """
replies:
  - {fault: unauthorized}
"""


@pytest.mark.spec("M9", "M11")
def test_a_run_whose_model_fails_says_so_in_the_chat_and_can_be_tried_again(
    nursery: Nursery, tmp_path: Path, database: str
) -> None:
    task = mission_project(tmp_path / "project", database, FAILING, until_idle=False)
    house = task.house()
    begin(house, cycles=False)
    life = started(nursery, task)
    (run,) = delegated(house, "Do it")
    until(partial(ended, house, [run]), lambda: life.said)
    chat = run.parameters["origin"]
    (told,) = [one.content for one in house.conversations.messages(chat) if one.kind == "todo_error"]
    assert "The key is wrong." in told
    assert house.runs.get(run.id).status == "failed", house.runs.get(run.id)
    # The next worker has a key.
    life.end(signal.SIGTERM)
    (Path(task.folder) / "rehearsal.yaml").write_text("- Now it works.\n")
    other = started(nursery, task)
    house.runs.resume(HERE, run.id)
    until(lambda: house.runs.get(run.id).status == "done", lambda: other.said)
    assert results(house) == ["Now it works."]
