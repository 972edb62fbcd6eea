"""A stopped run has the same effects on its mission, with and without a live worker."""

from __future__ import annotations

from typing import Final

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import Team, developer_experience

from punchlist.audit.check import check
from punchlist.claims import repository as claim_repository
from punchlist.engine.periodic import enqueue_cycle
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.model import MissionTodo
from punchlist.missions.run_control import MissionRuns, apply_stop, end_claim
from punchlist.missions.todos.claims import MissionClaims, run_holder
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs import service as run_service
from punchlist.runs.model import Run, RunKind
from punchlist.runs.queue import RunNotOwned, RunQueue
from punchlist.runs.workers import WorkerRegistration
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store

DEAD: Final = "99999999:1:gone"
ELSEWHERE: Final = "another-host:4711:99"


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def started(team: Team) -> tuple[MissionTodo, Run]:
    todo = team.todo_in(TodoStatus.IN_PROGRESS, "Replace babel-loader")
    (run,) = MissionRuns(team.store).for_todo(todo.id)
    return todo, run


def owned(team: Team, run: Run, executor: str) -> RunQueue:
    queue = RunQueue(team.store, executor)
    assert queue.dispatch(run)
    assert queue.begin(run.id)
    return queue


def claim(team: Team, run: Run) -> None:
    MissionClaims(team.store).claim(team.system, run_holder(run.id), team.slug, run.todo_id, 120)


def holder(team: Team, todo: MissionTodo) -> str | None:
    with team.store.read() as tx:
        found = claim_repository.find(tx, todo.id)
    return found.holder if found else None


@pytest.mark.spec("M11")
@pytest.mark.parametrize("state", ["queued", "live"])
def test_a_stop_of_a_queued_run_has_the_effects_of_a_stop_of_a_live_one(team: Team, state: str) -> None:
    todo, run = started(team)
    if state == "live":
        queue = owned(team, run, "worker")
        claim(team, run)
        queue.stop(run.id, "enough", lambda tx: apply_stop(tx, run, "enough"))
    else:
        MissionRuns(team.store).stop(team.person, run.id, "enough")
    assert MissionRuns(team.store).get(run.id).status == "stopped"
    (asked,) = Escalations(team.store).list()
    assert (asked.kind, asked.todo_id) == ("review", todo.id)
    assert "Its run was stopped: enough" in asked.question
    assert holder(team, todo) is None
    assert check(team.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("M11", "X3")
def test_a_stop_of_a_run_whose_worker_died_ends_its_claim(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    todo, run = started(team)
    owned(team, run, DEAD)
    claim(team, run)
    assert holder(team, todo) is not None
    monkeypatch.setattr(run_service, "is_running", lambda _: False)
    assert MissionRuns(team.store).stop(team.person, run.id, "enough").status == "stopped"
    assert holder(team, todo) is None
    assert [asked.kind for asked in Escalations(team.store).list()] == ["review"]


@pytest.mark.spec("M11", "X7")
@pytest.mark.parametrize("registered", [True, False], ids=["with a row", "without a row"])
def test_a_stop_of_a_run_whose_worker_on_another_host_is_gone_takes_effect_at_once(
    team: Team, clock: StoppedClock, registered: bool
) -> None:
    todo, run = started(team)
    registration = WorkerRegistration(team.store, ELSEWHERE, 4)
    if registered:
        registration.renew()
    queue = owned(team, run, ELSEWHERE)
    claim(team, run)
    runs = MissionRuns(team.store)
    clock.advance(minutes=2)
    if registered:
        # It lives, so it carries the stop out itself.
        registration.renew()
        assert (runs.stop(team.person, run.id, "enough").status, runs.get(run.id).wish) == ("running", "stop")
        clock.advance(seconds=61)
    assert runs.stop(team.person, run.id, "enough").status == "stopped"
    assert holder(team, todo) is None
    assert [asked.kind for asked in Escalations(team.store).list()] == ["review"]
    with pytest.raises(RunNotOwned):
        queue.get_owned(run.id)
    assert check(team.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("X3")
def test_a_claim_ends_with_its_run(team: Team) -> None:
    todo, run = started(team)
    owned(team, run, "worker")
    claim(team, run)
    with team.store.write() as tx:
        end_claim(tx, run)
        end_claim(tx, run)
    assert holder(team, todo) is None
    # Another agent claims it at once.
    MissionClaims(team.store).claim(team.owner, "elsewhere", team.slug, todo.id, 120)
    with team.store.write() as tx:
        end_claim(tx, run)
    assert "elsewhere" in (holder(team, todo) or "")
    assert check(team.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("M11", "M12")
def test_a_stop_of_a_queued_cycle_stops_its_planning(team: Team) -> None:
    cycle = enqueue_cycle(team.store, team.system, team.mission)
    (pillar, *_) = team.missions.pillars(team.mission)
    runs = MissionRuns(team.store)
    planning = runs.enqueue(
        team.system,
        kind=RunKind.PLAN,
        conversation_id=pillar.pillar.conversation_id,
        agent="pillar-owner",
        request={"cycle": cycle.id, "pillar": pillar.pillar.slug},
        mission_id=team.mission.id,
        pillar_id=pillar.pillar.id,
    )
    runs.stop(team.person, cycle.id, "not this week")
    assert runs.get(planning.id).status == "stopped"
