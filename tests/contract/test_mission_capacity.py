"""Slots are scarce: ten active, fifty in the backlog, of the whole mission (M2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.front import nothing_changes
from tests.contract.missions import BUILD, ONBOARDING, Team, developer_experience

from punchlist.errors import IllegalTransition
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.storage.store import Store

# The seed's words.
IN_BACKLOG_INSTEAD = "Active TODO limit (10) reached. Created in backlog instead."
BACKLOG_FULL = "Backlog limit (50) reached. Cancel or complete existing items first."
ACTIVE_FULL = "Active TODO limit (10) reached. Complete, cancel or demote an item first."


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def create(team: Team, pillar: str = BUILD, **more: Any) -> dict[str, Any]:
    return team.call(team.lead, "create", pillarSlug=pillar, title="A", **more)


def fill(team: Team, *, active: int = 0, backlog: int = 0) -> None:
    for target, count in (("pending", active), ("backlog", backlog)):
        for number in range(count):
            made = create(team, [BUILD, ONBOARDING][number % 2], targetStatus=target)
            assert (made["status"], "warning" in made) == (target, False)


def refused(store: Store, words: str, call: Any) -> None:
    with nothing_changes(store), pytest.raises(IllegalTransition) as error:
        call()
    assert str(error.value) == words


@pytest.mark.spec("M2", "M5")
def test_the_eleventh_active_todo_goes_to_the_backlog_with_a_warning(team: Team) -> None:
    fill(team, active=10)
    made = create(team)
    assert (made["status"], made["warning"]) == ("backlog", IN_BACKLOG_INSTEAD)
    assert create(team, targetStatus="backlog").get("warning") is None
    assert team.call(team.lead, "list")["summary"] == {
        "active": 10,
        "activeTodoLimit": 10,
        "backlog": 2,
        "backlogTodoLimit": 50,
    }


@pytest.mark.spec("M2")
def test_a_todo_in_progress_takes_a_slot_too(team: Team) -> None:
    fill(team, active=9)
    team.todo_in(TodoStatus.IN_PROGRESS)
    assert create(team)["warning"] == IN_BACKLOG_INSTEAD


@pytest.mark.spec("M2")
def test_a_full_backlog_refuses_what_is_for_it_though_a_slot_is_free(store: Store, team: Team) -> None:
    fill(team, active=9, backlog=50)
    refused(store, BACKLOG_FULL, lambda: create(team, targetStatus="backlog"))
    assert create(team)["status"] == "pending"


@pytest.mark.spec("M2")
def test_when_both_are_full_nothing_more_is_made(store: Store, team: Team) -> None:
    fill(team, active=10, backlog=50)
    for target in ("pending", "backlog"):
        refused(store, BACKLOG_FULL, lambda target=target: create(team, targetStatus=target))
    assert team.todos.capacity(team.slug).as_json() == {
        "active": 10,
        "activeTodoLimit": 10,
        "backlog": 50,
        "backlogTodoLimit": 50,
    }


@pytest.mark.spec("M2")
def test_a_promotion_fails_when_the_active_list_is_full_and_a_demotion_when_the_backlog_is(
    store: Store, team: Team
) -> None:
    fill(team, active=10, backlog=50)
    (waiting,) = team.todos.list(team.slug, status={TodoStatus.BACKLOG}, limit=1).items
    (pending,) = team.todos.list(team.slug, status={TodoStatus.PENDING}, limit=1).items
    refused(store, ACTIVE_FULL, lambda: team.update(waiting, TodoAction.PROMOTE))
    refused(store, BACKLOG_FULL, lambda: team.update(pending, TodoAction.DEMOTE))
    # To start takes no more than the slot that it has.
    assert team.update(pending, TodoAction.START).status == "in_progress"


@pytest.mark.spec("M2", "M8")
@pytest.mark.parametrize("way", ["complete", "cancel", "cancel what is pending", "demote"])
def test_what_ends_or_goes_back_frees_its_slot(team: Team, way: str) -> None:
    fill(team, active=9)
    todo = team.todo_in(TodoStatus.PENDING if way in ("demote", "cancel what is pending") else TodoStatus.IN_PROGRESS)
    assert create(team)["status"] == "backlog"
    if way == "complete":
        team.todos.complete(team.lead, team.slug, todo.id, "done")
    else:
        team.update(todo, TodoAction.DEMOTE if way == "demote" else TodoAction.CANCEL)
    made = create(team)
    assert (made["status"], "warning" in made) == ("pending", False)
    assert create(team)["warning"] == IN_BACKLOG_INSTEAD


@pytest.mark.spec("M2")
def test_the_limits_are_those_of_the_missions_file_and_of_each_mission_by_itself(store: Store, team: Team) -> None:
    small = developer_experience(store, "small", active=1, backlog=2)
    fill(team, active=10)
    assert create(small)["status"] == "pending"
    assert create(small)["warning"] == "Active TODO limit (1) reached. Created in backlog instead."
    assert create(small)["status"] == "backlog"
    refused(
        store,
        "Backlog limit (2) reached. Cancel or complete existing items first.",
        lambda: create(small, targetStatus="pending"),
    )


@pytest.mark.spec("M2", "M14")
def test_limits_that_are_lowered_later_take_nothing_away_but_let_nothing_in(store: Store, team: Team) -> None:
    fill(team, active=10, backlog=3)
    lower = developer_experience(store, active=4, backlog=5)
    assert lower.todos.capacity(lower.slug).as_json() == {
        "active": 10,
        "activeTodoLimit": 4,
        "backlog": 3,
        "backlogTodoLimit": 5,
    }
    assert create(lower)["warning"] == "Active TODO limit (4) reached. Created in backlog instead."
