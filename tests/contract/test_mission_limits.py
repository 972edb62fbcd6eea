"""A mission can be paused, and is limited in mode and budget (M19)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results
from tests.contract.missions import Team, developer_experience

from punchlist.audit.check import check
from punchlist.engine.periodic import enqueue_cycle
from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Role
from punchlist.missions.budgets.repository import Spend, SpendPlace
from punchlist.missions.budgets.service import Budgets
from punchlist.missions.run_control import MissionRuns
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.models.model import ModelRequest, Reply
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.queue import RunQueue
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store
from punchlist.views.health import read_health
from punchlist.views.series import read_series

pytestmark = pytest.mark.spec("M19")
Open = Callable[..., Office]


@pytest.fixture
def office(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Open]:
    opened: list[Office] = []

    def open(answers: Callable[[str, ModelRequest], Reply], **mission: Any) -> Office:
        opened.append(Office(tmp_path / "project", database, clock, answers, **mission))
        return opened[0]

    yield open
    for each in opened:
        each.close()


def agree(agent: str, request: ModelRequest) -> Reply:
    return Reply("Nothing to do.")


# --- paused -----------------------------------------------------------------------------------------------


def test_a_paused_mission_starts_nothing_and_continues_when_it_is_resumed(office: Open) -> None:
    ours = office(agree)
    team, missions = ours.team, ours.services.missions
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    missions.pause(team.person, team.slug, "holidays")
    ours.clock.advance(days=8)
    ours.work()
    assert ours.asked == []
    (run,) = ours.services.runs.for_todo(todo.id)
    assert run.status is RunStatus.QUEUED
    with pytest.raises(IllegalTransition, match="is paused since"):
        enqueue_cycle(ours.services.store, team.person, team.mission)
    assert read_health(team.store, team.slug).missions[0].problems == (
        "Paused since 2026-02-21T09:00:00.000000Z by person:ada: holidays.",
    )
    missions.resume(team.person, team.slug)
    ours.work()
    assert {agent for agent, _ in ours.asked} == {"pillar-owner", "mission-lead"}
    assert check(team.store, SCHEMA_VERSION).problems == []


def test_runs_that_work_are_paused_with_their_mission_and_those_of_a_person_stay_paused(store: Store) -> None:
    team = developer_experience(store)
    runs, queue = MissionRuns(store), RunQueue(store, "worker")
    first = team.todo_in(TodoStatus.IN_PROGRESS, "first")
    other = team.create("other", "onboarding")
    team.todos.update(team.lead, team.slug, other.id, TodoAction.START, "a test")
    for todo in (first, other):
        (run,) = runs.for_todo(todo.id)
        assert queue.dispatch(run)
        assert queue.begin(run.id)
    by_hand, with_mission = (runs.for_todo(todo.id)[0].id for todo in (first, other))
    runs.pause(team.person, by_hand)
    team.missions.pause(team.person, team.slug, "holidays")
    assert runs.get(with_mission).why == "its mission is paused: holidays"
    team.missions.resume(team.person, team.slug)
    assert [runs.get(id).wish for id in (by_hand, with_mission)] == ["pause", None]


def test_a_paused_mission_is_shown_and_paused_once(store: Store) -> None:
    team = developer_experience(store)
    paused = team.missions.pause(team.person, team.slug)
    assert (paused.paused_by, team.mission) == ("person:ada", paused)
    with pytest.raises(IllegalTransition, match="is paused since"):
        team.missions.pause(team.person, team.slug)
    team.missions.resume(team.person, team.slug)
    with pytest.raises(IllegalTransition, match="is not paused"):
        team.missions.resume(team.person, team.slug)
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.parametrize("role", [Role.LEAD, Role.OWNER, Role.WORKER])
def test_agents_do_not_pause_their_mission(store: Store, role: Role) -> None:
    team: Team = developer_experience(store)
    with pytest.raises(NotAllowed):
        team.missions.pause(team.scope(role), team.slug)


# --- budgets ----------------------------------------------------------------------------------------------


def test_a_request_that_would_exceed_the_day_is_not_sent_and_work_continues_the_next_day(office: Open) -> None:
    # Each request costs $0.10 and is estimated to cost more, since the prompt is long.
    ours = office(agree, limits={"costPerDay": 0.05})
    team = ours.team
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work()
    assert ours.asked == []
    (run,) = ours.services.runs.for_todo(todo.id)
    assert run.status is RunStatus.WAITING
    assert run.why == "Budget reached: $0.00 of $0.05 used (costPerDay)"
    (item,) = ours.services.inbox.list()
    assert (item.kind, item.mission, item.question) == ("budget", team.slug, "$0.00 of $0.05 used (costPerDay)")
    assert "Budget reached" in " ".join(read_health(team.store, team.slug).missions[0].problems)


def test_work_that_a_budget_stopped_continues_the_next_day(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "pillar-owner" or has_results(request):
            return Reply("Done.")
        return call("mission_todo_complete", missionSlug=ours.team.slug, todoId=todo.id, outcome="It is done.")

    ours = office(answers, limits={"tokensPerDay": 10_000})
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    Budgets(ours.services.store).reserve(SpendPlace(ours.team.mission.id), Spend(1, 9_990), ours.clock.now)
    ours.work()
    assert (ours.asked, ours.team.todos.get(todo.id).status) == ([], TodoStatus.IN_PROGRESS)
    ours.clock.advance(days=1)
    ours.work()
    assert ours.team.todos.get(todo.id).status is TodoStatus.COMPLETED
    assert "budget" not in ours.services.inbox.counts()


def test_the_budget_of_a_day_is_whole_again_on_the_next(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, limits={"tokensPerDay": 1_000}, cadence={"timezone": "Europe/Berlin"})
    budgets, mission = Budgets(store), team.mission
    place = SpendPlace(mission.id)
    assert budgets.reserve(place, Spend(1, 600), clock.now) is None
    budgets.settle(place, Spend(1, 600), Spend(1, 700, 100), clock.now)
    assert budgets.today(mission) == Spend(1, 700, 100)
    assert budgets.reserve(place, Spend(1, 300), clock.now) == "Budget reached: 800 of 1,000 tokens used (tokensPerDay)"
    assert len(budgets.stops(mission.id)) == 1
    clock.advance(hours=13)
    assert budgets.reserve(place, Spend(1, 300), clock.now) is not None, "23:00 in Berlin"
    clock.advance(hours=1)
    assert budgets.is_available(mission.id, None), "midnight in Berlin"
    assert (budgets.reserve(place, Spend(1, 300), clock.now), budgets.stops(mission.id)) == (None, [])


def test_the_budget_of_a_todo_does_not_stop_other_todos(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, limits={"costPerTodo": 2})
    budgets, mission = Budgets(store), team.mission
    first, other = team.create("first"), team.create("other")
    assert budgets.reserve(SpendPlace(mission.id, first.id), Spend(1, cost=1.5), clock.now) is None
    assert budgets.reserve(SpendPlace(mission.id, first.id), Spend(1, cost=1.0), clock.now) is not None
    assert budgets.reserve(SpendPlace(mission.id, other.id), Spend(1, cost=1.0), clock.now) is None
    assert [stop.todo_id for stop in budgets.stops(mission.id)] == [first.id]


def test_a_failed_request_is_refunded(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store)
    budgets, mission = Budgets(store), team.mission
    place = SpendPlace(mission.id)
    budgets.reserve(place, Spend(1, 500, 0, 0.5), clock.now)
    budgets.settle(place, Spend(1, 500, 0, 0.5), Spend(), clock.now)
    assert budgets.today(mission) == Spend()


def test_a_request_that_ends_after_midnight_belongs_to_the_day_before(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, cadence={"timezone": "Europe/Berlin"})
    budgets, place = Budgets(store), SpendPlace(team.mission.id)
    clock.advance(hours=13, minutes=59)
    sent = clock.now
    budgets.reserve(place, Spend(1, 500), sent)
    clock.advance(minutes=2)
    budgets.settle(place, Spend(1, 500), Spend(1, 600, 50), sent)
    assert budgets.today(team.mission) == Spend()
    spend = read_series(store, team.slug, days=2).spend
    assert [(each.day, each.input_tokens, each.output_tokens) for each in spend] == [("2026-02-21", 600, 50)]


def test_the_mode_of_a_mission_limits_its_agents(office: Open, tmp_path: Path) -> None:
    def write(agent: str, request: ModelRequest) -> Reply:
        return call("write_file", path="x", content="hello")

    ours = office(write, limits={"mode": "default"})
    ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work()
    assert not (tmp_path / "project" / "x").exists()
    assert [item.kind for item in ours.services.inbox.list()] == ["approval"]
