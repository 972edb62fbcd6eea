"""`db check` says when the trail or a list is not what was written (X5, TRUST 5 and 30)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import pytest
from tests.contract.front import by_hand, everything, trail
from tests.contract.scenario import Scenario
from tests.sessions import start_session
from tests.tables import our_tables

from punchlist.audit.check import check
from punchlist.checklist.lifecycle import ChecklistStatus as ItemStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.checklist.repository import save_checklist
from punchlist.checklist.service import Checklists
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import StoreDamaged
from punchlist.kernel.ids import new_id
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.repository import TurnTodoRepository
from punchlist.plan.service import Plans
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store


def problems(store: Store) -> list[str]:
    return check(store, SCHEMA_VERSION).problems


def unnoticed_edits(store: Store, table: str, key: str, value: Any, *, but: Collection[str] = ()) -> list[str]:
    """The columns of one row that can be changed without the check saying so. Each is put back after."""
    names = [column.name for column in our_tables().tables[table].columns]
    (row,) = [row for row in everything(store)[table] if row[0] == value]
    missed = []
    for column, old in zip(names, row, strict=True):
        if column in but:
            continue
        new = old + 1_000 if isinstance(old, int) else f"{old or ''}x"
        update = f"UPDATE {table} SET {column} = :it WHERE {key} = :value"
        by_hand(store, update, it=new, value=value)
        if not problems(store):
            missed.append(column)
        by_hand(store, update, it=old, value=value)
    assert problems(store) == []
    return missed


def unnoticed_losses(store: Store, stream: str) -> list[str]:
    """The events that can be deleted without the check naming their stream. Each is put back after."""
    events = our_tables().tables["events"]
    insert = f"INSERT INTO events VALUES ({', '.join(f':{column.name}' for column in events.columns)})"
    missed = []
    for event in trail(store, stream):
        by_hand(store, "DELETE FROM events WHERE seq = :seq", seq=event.seq)
        if not any(problem.startswith(stream) for problem in problems(store)):
            missed.append(f"{event.version} {event.action}")
        by_hand(store, insert, **asdict(event))
    assert problems(store) == []
    return missed


@pytest.mark.spec("X5")
def test_an_untouched_store_has_no_problems(store: Store, scenario: Scenario) -> None:
    report = check(store, SCHEMA_VERSION)
    assert (report.healthy, report.problems, report.warnings) == (True, [], [])
    assert report.events == len(trail(store)) == 17
    assert {size.table: size.rows for size in report.sizes} == {
        name: len(rows) for name, rows in everything(store).items()
    }


@pytest.mark.spec("X5")
def test_an_edited_event_is_noticed_whatever_was_edited(store: Store, scenario: Scenario) -> None:
    for stream in scenario.streams:
        assert unnoticed_edits(store, "events", "seq", trail(store, stream)[1].seq, but={"seq"}) == []


@pytest.mark.spec("X5")
def test_a_deleted_event_of_a_list_is_noticed_and_its_last_one_too(store: Store, scenario: Scenario) -> None:
    _, checklist, plan = scenario.streams
    assert {stream: unnoticed_losses(store, stream) for stream in (checklist, plan)} == {checklist: [], plan: []}


@pytest.mark.spec("X5")
def test_a_gap_in_the_trail_is_named(store: Store, scenario: Scenario) -> None:
    for stream in scenario.streams:
        by_hand(store, "DELETE FROM events WHERE stream = :stream AND version = 2", stream=stream)
        assert f"{stream}: event 2 is missing" in problems(store)


@pytest.mark.spec("X5")
def test_a_deleted_event_of_a_conversation_is_noticed_and_its_last_one_too(store: Store, scenario: Scenario) -> None:
    assert unnoticed_losses(store, "conversation:s") == []


@pytest.mark.spec("X5")
@pytest.mark.parametrize("kind", ["conversation", "checklist", "plan"])
def test_a_trail_that_is_gone_altogether_is_noticed(store: Store, scenario: Scenario, kind: str) -> None:
    by_hand(store, f"DELETE FROM events WHERE stream LIKE '{kind}:%'")
    assert problems(store)


@pytest.mark.spec("X5")
def test_events_that_changed_places_are_noticed(store: Store, scenario: Scenario) -> None:
    stream = scenario.streams[1]
    for version, place in ((2, 99), (3, 2), (99, 3)):
        by_hand(
            store,
            "UPDATE events SET version = :place WHERE stream = :stream AND version = :version",
            stream=stream,
            version=version,
            place=place,
        )
    assert any(problem.startswith(stream) for problem in problems(store))


@pytest.mark.spec("X5")
def test_an_edited_todo_is_noticed_whatever_was_edited(store: Store, scenario: Scenario) -> None:
    # The other columns are held by foreign keys and checks; see the schema's tests.
    held = {"id", "conversation_id", "turn_id", "status"}
    assert unnoticed_edits(store, "turn_todos", "id", scenario.todo_ids[1], but=held) == []


@pytest.mark.spec("X5")
def test_an_edited_checklist_is_noticed_whatever_was_edited(store: Store, scenario: Scenario) -> None:
    assert unnoticed_edits(store, "checklists", "conversation_id", "s", but={"conversation_id"}) == []


@pytest.mark.spec("X5")
def test_an_edited_turn_is_noticed_whatever_was_edited(store: Store, scenario: Scenario) -> None:
    held = {"id", "conversation_id", "parent_turn_id"}
    assert unnoticed_edits(store, "turns", "id", scenario.turn_id, but=held) == []


@pytest.mark.spec("X5")
def test_an_edited_message_is_noticed_whoever_said_it(
    store: Store, conversations: Conversations, scenario: Scenario
) -> None:
    held = {"id", "conversation_id", "turn_id", "role"}
    said, *updates = conversations.messages("s")
    assert (said.content, updates[0].kind) == ("Fix it", "todo_update")
    for message in (said, updates[0]):
        assert unnoticed_edits(store, "messages", "id", message.id, but=held) == []


@pytest.mark.spec("X5")
def test_a_message_put_in_by_hand_is_noticed(store: Store, scenario: Scenario) -> None:
    with store.write() as tx:
        conversation_repository.add_message(tx, "s", MessageRole.USER, "Ignore all that")
    assert problems(store)


@pytest.mark.spec("X5")
@pytest.mark.parametrize("table", ["turn_todos", "checklists", "messages"])
def test_deleted_rows_are_noticed(store: Store, scenario: Scenario, table: str) -> None:
    by_hand(store, f"DELETE FROM {table}")
    assert problems(store)


@pytest.mark.spec("X5")
def test_a_todo_changed_without_an_event_is_noticed_though_its_checksum_is_right(
    store: Store, scenario: Scenario
) -> None:
    with store.write() as tx:
        repository = TurnTodoRepository(tx)
        todo = repository.find_by_id(scenario.todo_ids[3])
        assert todo
        assert repository.update(todo, status=PlanStatus.COMPLETED, outcome="trust me")
    assert problems(store) == [f"plan:{scenario.turn_id}: todo {scenario.todo_ids[3]} differs from its events"]


@pytest.mark.spec("X5")
@pytest.mark.parametrize("planned", [True, False], ids=["in a plan", "in a turn without one"])
def test_a_todo_put_in_by_hand_is_noticed_though_its_checksum_is_right(
    store: Store, conversations: Conversations, agent: Scope, scenario: Scenario, planned: bool
) -> None:
    turn_id = scenario.turn_id if planned else conversations.open_turn(agent).id
    with store.write() as tx:
        repository = TurnTodoRepository(tx)
        model = repository.find_by_id(scenario.todo_ids[3])
        assert model
        repository.create(model._replace(id=new_id(), turn_id=turn_id, priority=4))
    assert problems(store)


@pytest.mark.spec("X5")
def test_a_checklist_put_in_by_hand_is_noticed_though_its_checksum_is_right(
    store: Store, conversations: Conversations, agent: Scope, scenario: Scenario
) -> None:
    start_session(store, Scope("another", agent.actor))
    forged = Checklist((ChecklistItem("a", "A", "A", ItemStatus.PENDING),), 1, 0, "2026-02-21T09:00:00.000000Z")
    with store.write() as tx:
        save_checklist(tx, "another", forged)
    assert problems(store)


@pytest.mark.spec("X5")
def test_what_was_changed_behind_our_back_is_never_served_as_truth(
    store: Store, checklists: Checklists, plans: Plans, agent: Scope, scenario: Scenario
) -> None:
    by_hand(store, "UPDATE turn_todos SET title = 'forged'")
    by_hand(store, "UPDATE checklists SET items = '[]'")
    with pytest.raises(StoreDamaged, match="db check"):
        checklists.get("s")
    with pytest.raises(StoreDamaged, match="db check"):
        plans.list(TurnScope("s", agent.actor, scenario.turn_id))
