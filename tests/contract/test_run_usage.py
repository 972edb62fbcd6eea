"""What a run shows while it is open: its usage so far, and how long its calls wait for a person (X4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results

from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.usage import MissionUsageService
from punchlist.models.model import ModelRequest, Reply
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import RunKind
from punchlist.toolcalls.policy import Mode
from punchlist.views.inbox_model import RequestKind
from punchlist.views.run_timeline import read_timeline
from punchlist.views.run_usage import read_figures

HOUR = 3_600.0


def _deploys(agent: str, request: ModelRequest) -> Reply:
    if agent == "mission-lead":
        return Reply("Noted.")
    return Reply("Deployed.") if has_results(request) else call("run_command", command="make deploy")


@pytest.fixture
def office(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Office]:
    opened = Office(tmp_path / "project", database, clock, _deploys, todo={"maxReviews": 0})
    yield opened
    opened.close()


@pytest.mark.spec("X4", "M15")
def test_a_waiting_run_shows_its_tokens_its_work_and_its_wait(office: Office) -> None:
    store, runs = office.services.store, office.services.runs
    todo = office.team.todo_in(TodoStatus.IN_PROGRESS, "Deploy")
    office.work(Mode.DEFAULT)
    office.clock.advance(hours=2)
    [run] = [run for run in runs.list() if run.kind is RunKind.EXECUTE]
    assert (run.status, run.input_tokens) == (RunStatus.WAITING, 0), "its row is written when the turn ends"
    figures = read_figures(store, [run])[run.id]
    assert (figures.input_tokens, figures.output_tokens) == (90, 10)
    assert (figures.worked, figures.elapsed) == (0.0, 2 * HOUR), "the clock of the test stands still while it works"
    usage = MissionUsageService(store).todo(todo.id)
    assert (usage.input_tokens, usage.output_tokens, usage.runs) == (90, 10, 1)
    timeline = read_timeline(store, run.id)
    # They begin at the same moment of the stopped clock.
    model, command = sorted(timeline.steps, key=lambda step: step.kind)
    assert (model.waits, model.wait_seconds, command.waits, command.wait_seconds) == (False, 0.0, True, 2 * HOUR)
    assert (command.seconds, timeline.seconds) == (0.0, 2 * HOUR)

    [item] = [item for item in office.services.inbox.list() if item.kind is RequestKind.APPROVAL]
    office.services.inbox.answer(office.team.person, str(item.number), "deny", reason="not now")
    office.work(Mode.DEFAULT)
    office.clock.advance(hours=5)
    ended = runs.get(run.id)
    figures = read_figures(store, [ended])[run.id]
    # The turn of the run is counted once.
    assert (figures.input_tokens, figures.elapsed) == (ended.input_tokens, 2 * HOUR)
    [command] = [step for step in read_timeline(store, run.id).steps if step.kind == "tool"]
    assert (command.waits, command.wait_seconds, command.seconds) == (False, 2 * HOUR, 0.0)
