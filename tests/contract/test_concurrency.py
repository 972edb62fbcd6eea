"""Several processes on one database: nothing lost, nothing twice, nobody told to wait (TRUST 3 and 4)."""

from __future__ import annotations

import pytest
from tests.contract.crowd import Crowd, codes, made
from tests.contract.front import plan, todo, trail

from punchlist.audit.check import check
from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import plan_stream
from punchlist.plan.service import Plans
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store

EVERYBODY = 50


def all_created(crowd: Crowd, database: str, plans: Plans, turn: TurnScope, *, processes: int, times: int) -> None:
    outcomes = crowd.go(database, "create", processes=processes, times=times)
    total = processes * times
    assert codes(outcomes) == {"ok": total}
    found = plans.list(turn, frozenset(PlanStatus))
    assert sorted(item.id for item in found.items) == sorted(made(outcomes))
    assert len({item.id for item in found.items}) == found.summary["total"] == total
    assert [item.priority for item in found.items] == list(range(total))


@pytest.mark.spec("T2", "X7")
def test_todos_created_by_four_processes_are_all_there_in_dense_order(
    crowd: Crowd, store: Store, database: str, plans: Plans, turn: TurnScope
) -> None:
    all_created(crowd, database, plans, turn, processes=4, times=100)
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.soak
@pytest.mark.spec("T2", "X7")
def test_eight_thousand_todos_created_by_eight_processes_are_all_there(
    crowd: Crowd, store: Store, database: str, plans: Plans, turn: TurnScope
) -> None:
    all_created(crowd, database, plans, turn, processes=8, times=1_000)
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("T4")
def test_of_fifty_who_complete_one_todo_at_once_exactly_one_does(
    crowd: Crowd, store: Store, database: str, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "the one")
    outcomes = crowd.go(database, "complete_the_first", processes=2, threads=25)
    assert len(outcomes) == EVERYBODY
    assert codes(outcomes)["ok"] == 1
    assert set(codes(outcomes)) <= {"ok", "illegal_transition", "conflict"}
    (todo_,) = plans.list(turn, frozenset(PlanStatus)).items
    assert [todo_.outcome] == made(outcomes)
    assert [event.action for event in trail(store, plan_stream(turn.turn_id))] == ["create", "complete"]


@pytest.mark.spec("T5")
def test_of_fifty_who_start_fifty_todos_at_once_exactly_one_does(
    crowd: Crowd, database: str, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, *(f"todo {number}" for number in range(EVERYBODY)))
    outcomes = crowd.go(database, "start_its_own", processes=2, threads=25)
    assert len(outcomes) == EVERYBODY
    assert codes(outcomes)["ok"] == 1
    assert set(codes(outcomes)) <= {"ok", "illegal_transition", "conflict"}
    assert [item.id for item in plans.list(turn, {PlanStatus.IN_PROGRESS}).items] == made(outcomes)


@pytest.mark.spec("W1", "W3")
def test_items_added_by_many_processes_all_survive_up_to_the_limit(
    crowd: Crowd, store: Store, database: str, checklists: Checklists
) -> None:
    outcomes = crowd.go(database, "add", processes=3, threads=5, times=3)
    assert codes(outcomes) == {"ok": 20, "invalid_input": 25}
    stored = checklists.get("s")
    assert sorted(item.content for item in stored.items) == sorted(made(outcomes))
    assert len({item.id for item in stored.items}) == stored.revision == 20
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("W3", "X5")
def test_of_fifty_parallel_changes_of_one_item_none_is_lost_silently(
    crowd: Crowd, store: Store, database: str, checklists: Checklists, agent: Scope
) -> None:
    checklists.rewrite(agent, [todo("A")])
    outcomes = crowd.go(database, "edit", processes=2, threads=25)
    assert codes(outcomes) == {"ok": EVERYBODY}
    history = trail(store, checklist_repository.checklist_stream("s"))[1:]
    wordings = [event.payload()["items"][0]["content"] for event in history]
    assert sorted(wordings) == sorted(made(outcomes))
    assert [item.content for item in checklists.get("s").items] == wordings[-1:]
    assert checklists.get("s").revision == 1 + EVERYBODY


@pytest.mark.spec("T7")
def test_processes_that_come_first_at_the_same_moment_share_one_database_and_one_turn(
    crowd: Crowd, database: str, request: pytest.FixtureRequest
) -> None:
    outcomes = crowd.go(database, "open", processes=4, threads=4)
    assert codes(outcomes) == {"ok": 16}
    conversations: Conversations = request.getfixturevalue("conversations")
    assert {turn.id for turn in conversations.turns("s")} == set(made(outcomes))
    assert len(set(made(outcomes))) == 1


@pytest.mark.soak
@pytest.mark.spec("W3", "X5")
def test_eight_processes_change_one_item_a_thousand_times_each(
    crowd: Crowd, store: Store, database: str, checklists: Checklists, agent: Scope
) -> None:
    checklists.rewrite(agent, [todo("A")])
    assert codes(crowd.go(database, "edit", processes=8, times=1_000)) == {"ok": 8_000}
    assert checklists.get("s").revision == 8_001
    assert check(store, SCHEMA_VERSION).problems == []
