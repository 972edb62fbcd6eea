"""Checks, evidence and marks are stored with the items of both lists (V1, V2, V4, T14)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.contract.front import by_hand, call, nothing_changes, plan, todo, todo_write, trail

from punchlist.audit.check import check
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import NewTodo, TurnTodo, plan_stream
from punchlist.plan.service import Plans
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store
from punchlist.verification.model import Check, CheckOutcome, Mark, Verification, check_result, evidence_call

PERSON = Actor(Role.PERSON, "ann")
FAILED = check_result(CheckOutcome.FAILED, "1 failed", "2026-02-21T09:00:00Z")
PASSED = check_result(CheckOutcome.PASSED, "2 passed", "2026-02-21T09:00:01Z")
WRITTEN = evidence_call("write_file", "path=a.py", "call-1", "a.py")


def items(plans: Plans, turn: TurnScope) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call(plans, turn, "list_todo", status="all")["items"]
    return found


def first(plans: Plans, turn: TurnScope) -> TurnTodo:
    return plans.list(turn, list(PlanStatus)).items[0]


@pytest.mark.spec("V2")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("pytest -q", Check(command="pytest -q")),
        ({"command": "make", "timeout": 5}, Check(command="make", timeout=5)),
        ({"file": "a.md", "contains": "Usage"}, Check(file="a.md", contains="Usage")),
        ({"metric": "coverage"}, Check(metric="coverage")),
        (None, None),
        ("", None),
    ],
)
def test_a_todo_carries_its_check(store: Store, plans: Plans, turn: TurnScope, given: Any, kept: Check | None) -> None:
    call(plans, turn, "create_todo", items=[{"title": "A", "check": given}])
    assert first(plans, turn).verified() == Verification(kept)
    (listed,) = items(plans, turn)
    assert listed.get("check") == (given or None)
    assert "mark" not in listed
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("V2")
@pytest.mark.parametrize("bad", [7, [], {"command": "a", "file": "b"}, {"run": "a"}, {"file": "a", "timeout": 3}])
def test_a_bad_check_changes_nothing_and_the_error_names_its_item(
    store: Store, plans: Plans, turn: TurnScope, bad: Any
) -> None:
    with nothing_changes(store), pytest.raises(InvalidInput, match=r"items\[1\]\.check"):
        call(plans, turn, "create_todo", items=[{"title": "A"}, {"title": "B", "check": bad}])


@pytest.mark.spec("V2")
def test_only_a_persons_role_makes_a_check_a_persons(plans: Plans, turn: TurnScope) -> None:
    forged = Check(command="rm -rf .", by_person=True)
    plans.create(turn, [NewTodo("A", check=forged)])
    plans.create(replace(turn, actor=PERSON), [NewTodo("B", check=replace(forged, by_person=False))])
    # A copy keeps the author of its check, whoever makes the copy.
    plans.create(replace(turn, actor=PERSON), [NewTodo("C", check=Check(command="x"), copied_from="old")])
    authors = [todo.verified().check for todo in plans.list(turn).items]
    assert [each.by_person for each in authors if each] == [False, True, False]


@pytest.mark.spec("T14")
def test_a_copy_names_the_todo_it_takes_over(plans: Plans, turn: TurnScope) -> None:
    plans.create(turn, [NewTodo("A", copied_from="old")])
    assert items(plans, turn)[0]["copiedFrom"] == "old"


@pytest.mark.spec("V2")
def test_a_failed_check_stays_with_its_open_todo_until_the_next_result(
    store: Store, plans: Plans, turn: TurnScope
) -> None:
    (todo_id,) = plan(plans, turn, "A")
    assert plans.record_check(turn, todo_id, FAILED).status is PlanStatus.PENDING
    assert items(plans, turn)[0]["checkResult"] == {"outcome": "failed", "output": "1 failed", "at": FAILED.at}
    call(plans, turn, "start_todo", todoId=todo_id)
    assert plans.record_check(turn, todo_id, PASSED).status is PlanStatus.IN_PROGRESS
    assert first(plans, turn).verified().result == PASSED
    assert [event.action for event in trail(store, plan_stream(turn.turn_id))] == ["create", "check", "start", "check"]
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("V4")
@pytest.mark.parametrize(
    ("verification", "mark"),
    [
        (None, Mark.CLAIMED),
        (Verification(evidence=(WRITTEN,)), Mark.EVIDENCED),
        (Verification(Check(command="x"), PASSED, (WRITTEN,)), Mark.CHECKED),
        (Verification(Check(command="x"), FAILED, (WRITTEN,)), Mark.EVIDENCED),
    ],
)
def test_a_completed_todo_has_the_mark_of_its_verification_and_can_be_accepted(
    store: Store, plans: Plans, turn: TurnScope, verification: Verification | None, mark: Mark
) -> None:
    (todo_id,) = plan(plans, turn, "A")
    plans.end(turn, todo_id, "done", verification=verification)
    assert items(plans, turn)[0]["mark"] == mark
    accepted = plans.accept(replace(turn, actor=PERSON), todo_id)
    assert accepted.verified() == replace(verification or Verification(), accepted_by="person:ann")
    assert items(plans, turn)[0]["mark"] == "accepted"
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("V4")
def test_a_todo_is_accepted_after_its_turn_and_by_no_model(
    store: Store, plans: Plans, conversations: Conversations, turn: TurnScope
) -> None:
    done, still_open = plan(plans, turn, "A", "B")
    person = replace(turn, actor=PERSON)
    plans.end(turn, done, "done")
    conversations.end_turn(turn, reason="a new prompt")
    with nothing_changes(store):
        with pytest.raises(NotAllowed, match="supervisor may not accept"):
            plans.accept(turn, done)
        with pytest.raises(IllegalTransition, match="that is pending"):
            plans.accept(person, still_open)
        with pytest.raises(NotFound):
            plans.accept(replace(person, turn_id="another"), done)
    assert plans.accept(person, done).verified().mark is Mark.ACCEPTED


@pytest.mark.spec("V4")
def test_what_a_person_completes_is_accepted(
    plans: Plans, turn: TurnScope, checklists: Checklists, agent: Scope
) -> None:
    person = replace(turn, actor=PERSON)
    (todo_id,) = plan(plans, turn, "A")
    assert plans.end(person, todo_id, "done").todo.verified().accepted_by == "person:ann"
    todo_write(checklists, agent, [todo("A")])
    change = checklists.advance(replace(agent, actor=PERSON), "1", ChecklistAction.COMPLETE, reason="todos done")
    assert change.checklist.items[0].verification.mark is Mark.ACCEPTED


@pytest.mark.spec("X5")
@pytest.mark.parametrize("forged", ["'{}'", "''", "'nonsense'", "NULL"])
def test_a_changed_verification_is_noticed(store: Store, plans: Plans, turn: TurnScope, forged: str) -> None:
    call(plans, turn, "create_todo", items=[{"title": "A", "check": "pytest -q"}])
    by_hand(store, f"UPDATE turn_todos SET verification = {forged}")
    assert check(store, SCHEMA_VERSION).problems
    snapshot = plans.snapshot(turn)
    assert snapshot.todos == []
    assert "is not what was written" in snapshot.problems[0]


@pytest.mark.spec("C11")
def test_a_verification_that_cannot_be_read_is_reported_and_skipped(
    store: Store, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "A", "B")
    for unreadable in ("nonsense", "[]", '{"check":{"run":"x"}}', '{"checkResult":{"outcome":"fine"}}', '{"check":7}'):
        forged = first(plans, turn)._replace(verification=unreadable)
        by_hand(
            store,
            "UPDATE turn_todos SET verification = :text, checksum = :sum WHERE id = :id",
            text=unreadable,
            sum=forged.checksum(),
            id=forged.id,
        )
        snapshot = plans.snapshot(turn)
        assert [todo.title for todo in snapshot.todos] == ["B"]
        assert forged.id in snapshot.problems[0]


@pytest.mark.spec("V1", "V2", "V4")
def test_a_checklist_item_keeps_its_verification_until_it_is_reopened(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    (item,) = todo_write(checklists, agent, [todo("A", "completed")]).data["todos"]
    assert item["mark"] == "claimed"
    verified = Verification(Check(command="x", by_person=True), PASSED, (WRITTEN,))
    checklists.verify(agent, item["id"], verified)
    (item,) = todo_write(checklists, agent, [todo("A", "completed")]).data["todos"]
    assert (item["mark"], item["check"], item["evidence"][0]["changed"]) == ("checked", "x", "a.py")
    person = replace(agent, actor=PERSON)
    assert checklists.accept(person, "1").checklist.items[0].verification == replace(verified, accepted_by="person:ann")
    assert check(store, SCHEMA_VERSION).problems == []
    (item,) = todo_write(checklists, agent, [todo("A")]).data["todos"]
    assert set(item) == {"id", "content", "status", "activeForm", "check"}


@pytest.mark.spec("W3", "V4")
def test_a_verification_is_no_change_that_undo_undoes(store: Store, checklists: Checklists, agent: Scope) -> None:
    todo_write(checklists, agent, [todo("A")])
    item_id = todo_write(checklists, agent, [todo("A", "completed")]).data["todos"][0]["id"]
    checklists.verify(agent, item_id, Verification(evidence=(WRITTEN,)))
    with pytest.raises(NotAllowed, match="supervisor may not accept"):
        checklists.accept(agent, item_id)
    undone = checklists.undo(agent, reason="undo").checklist
    assert [(item.status, item.verification) for item in undone.items] == [("pending", Verification())]
    with nothing_changes(store), pytest.raises(IllegalTransition, match="that is pending"):
        checklists.accept(replace(agent, actor=PERSON), item_id)
    assert check(store, SCHEMA_VERSION).problems == []
