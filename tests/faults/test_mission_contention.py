"""Many processes want a mission's last slots: limits hold exactly, and no change is lost silently (M2, TRUST 4, 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.contract.missions import Team, developer_experience
from tests.faults.mission_writer import Crew, Outcome, Task

from punchlist.audit.check import check
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.runs.service import Runs
from punchlist.storage import event_log
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store

REFUSED = "illegal_transition"


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    started = Crew()
    yield started
    started.end()


def codes(outcomes: list[Outcome]) -> Counter[str]:
    return Counter(code for code, _ in outcomes)


def made(outcomes: list[Outcome]) -> list[str]:
    return [detail for code, detail in outcomes if code == "ok"]


def counted(team: Team) -> tuple[int, int]:
    capacity = team.todos.capacity(team.slug)
    return capacity.active, capacity.backlog


def sound(team: Team) -> None:
    """No limit was passed, not even for a moment, and the trail tells what the rows say."""
    active = backlog = 0
    events = team.trail()
    assert list(event_log.broken_links(events)) == []
    weight = {"pending": (1, 0), "in_progress": (1, 0), "backlog": (0, 1)}
    for event in events:
        gone, come = weight.get(event.from_status or "", (0, 0)), weight.get(event.to_status or "", (0, 0))
        active, backlog = active + come[0] - gone[0], backlog + come[1] - gone[1]
        assert active <= 10
        assert backlog <= 50
    assert (active, backlog) == counted(team)
    assert check(team.store, SCHEMA_VERSION).problems == []


def creations(crew: Crew, store: Store, database: str, *, processes: int, times: int) -> None:
    team = developer_experience(store)
    outcomes = crew.go(Task(database, "create", times), processes)
    assert codes(outcomes) == {"ok": 60, REFUSED: processes * times - 60}
    assert {detail for code, detail in outcomes if code == REFUSED} == {
        "Backlog limit (50) reached. Cancel or complete existing items first."
    }
    assert counted(team) == (10, 50)
    assert sorted(todo.id for todo in team.todos.list(team.slug).items) == sorted(made(outcomes))
    sound(team)


@pytest.mark.spec("M2", "X7")
def test_of_all_who_want_a_slot_at_once_as_many_get_one_as_there_are(crew: Crew, store: Store, database: str) -> None:
    creations(crew, store, database, processes=8, times=25)


@pytest.mark.soak
@pytest.mark.spec("M2", "X7")
def test_thirty_two_processes_and_two_thousand_attempts_leave_the_limits_exactly_kept(
    crew: Crew, store: Store, database: str
) -> None:
    creations(crew, store, database, processes=32, times=63)


def anything(crew: Crew, store: Store, database: str, *, processes: int, times: int) -> None:
    team = developer_experience(store)
    outcomes = crew.go(Task(database, "anything", times), processes)
    assert len(outcomes) == processes * times
    assert set(codes(outcomes)) <= {"ok", REFUSED}
    sound(team)
    # Each answer "ok" is a change in the trail, and nothing else is.
    changes = [f"{event.action} {event.subject}" for event in team.trail() if event.actor.startswith("lead:")]
    assert Counter(change.replace("shelve", "create") for change in changes) == Counter(made(outcomes))
    started = sum(change.startswith("start ") for change in changes)
    assert len(Runs(store).list(mission_id=team.mission.id, ended=True, limit=100_000)) == started


@pytest.mark.spec("M2", "M4", "X7")
def test_whatever_many_do_to_a_mission_at_once_its_limits_and_its_trail_hold(
    crew: Crew, store: Store, database: str
) -> None:
    anything(crew, store, database, processes=8, times=25)


@pytest.mark.soak
@pytest.mark.spec("M2", "M4", "X7")
def test_whatever_thirty_two_processes_do_to_a_mission_its_limits_and_its_trail_hold(
    crew: Crew, store: Store, database: str
) -> None:
    anything(crew, store, database, processes=32, times=63)


@pytest.mark.spec("M2")
def test_of_all_who_promote_at_once_as_many_do_as_there_are_slots(crew: Crew, store: Store, database: str) -> None:
    team = developer_experience(store)
    for _ in range(30):
        team.todo_in(TodoStatus.BACKLOG)
    outcomes = crew.go(Task(database, "promote", 2, threads=5), 4)
    assert codes(outcomes) == {"ok": 10, REFUSED: 30}
    assert counted(team) == (10, 20)
    sound(team)


@pytest.mark.spec("M2", "M18", "X7")
def test_swaps_and_sub_items_of_many_keep_full_lists_exactly_full(crew: Crew, store: Store, database: str) -> None:
    team = developer_experience(store, active=10, backlog=12)
    for _ in range(20):
        team.create()
    outcomes = crew.go(Task(database, "shuffle", 12), 4)
    assert len(outcomes) == 48
    assert set(codes(outcomes)) <= {"ok", REFUSED}
    parts = [detail for detail in made(outcomes) if detail.startswith("part ")]
    assert len(parts) == 2
    assert counted(team) == (10, 12)
    swaps = len(made(outcomes)) - len(parts)
    moves = Counter(event.action for event in team.trail())
    assert (moves["promote"], moves["demote"]) == (swaps, swaps)
    assert swaps > 0
    assert check(team.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("M5", "X5")
def test_of_fifty_parallel_changes_of_one_todo_none_is_lost_silently(crew: Crew, store: Store, database: str) -> None:
    team = developer_experience(store)
    todo = team.create()
    outcomes = crew.go(Task(database, "reprioritize", threads=25), 2)
    assert codes(outcomes) == {"ok": 50}
    history = [event for event in team.trail() if event.action == TodoAction.REPRIORITIZE]
    assert sorted(event.reason for event in history) == sorted(made(outcomes))
    assert team.todos.get(todo.id).priority == history[-1].payload()["priority"]
    sound(team)


@pytest.mark.spec("M6")
def test_of_fifty_who_complete_one_todo_at_once_exactly_one_does(crew: Crew, store: Store, database: str) -> None:
    team = developer_experience(store)
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    outcomes = crew.go(Task(database, "complete", threads=25), 2)
    assert codes(outcomes) == {"ok": 1, REFUSED: 49}
    assert [team.todos.get(todo.id).outcome] == made(outcomes)


@pytest.mark.spec("M5", "X7")
def test_the_same_request_from_many_processes_makes_one_todo(crew: Crew, store: Store, database: str) -> None:
    team = developer_experience(store)
    outcomes = crew.go(Task(database, "repeat", 10), 6)
    assert codes(outcomes) == {"ok": 60}
    assert len(set(made(outcomes))) == len(team.todos.list(team.slug).items) == 10
    sound(team)
