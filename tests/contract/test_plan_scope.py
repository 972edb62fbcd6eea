"""Where a caller stands and what it may do comes from its surface, never from what it sends (T7, T13)."""

from __future__ import annotations

import pytest
from tests.contract.front import call, everything, nothing_changes, plan, trail

from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, NotAllowed, NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.plan.lifecycle import PlanAction
from punchlist.plan.model import NewTodo
from punchlist.plan.service import Plans
from punchlist.plan.tools import plan_tools
from punchlist.storage.store import Store


@pytest.mark.spec("T7")
def test_a_turn_conversation_or_agent_that_a_model_sends_has_no_effect(
    store: Store, plans: Plans, turn: TurnScope, other_turn: TurnScope
) -> None:
    (theirs,) = plan(plans, other_turn, "theirs")
    forged = {
        "turnId": other_turn.turn_id,
        "turn_id": other_turn.turn_id,
        "conversationId": "another",
        "conversation_id": "another",
        "agentId": "somebody else",
        "actor": "person:root",
        "role": "person",
    }
    item = {"title": "mine", **forged, "id": theirs, "status": "completed", "priority": 7}
    (made,) = call(plans, turn, "create_todo", items=[item], **forged)["created"]
    assert [found["title"] for found in call(plans, turn, "list_todo", **forged)["items"]] == ["mine"]
    call(plans, turn, "start_todo", todoId=made["id"], **forged)
    call(plans, turn, "complete_todo", todoId=made["id"], outcome="done", **forged)
    stored = {row[0]: (row[1], row[2], row[7]) for row in everything(store)["turn_todos"]}
    assert stored == {
        theirs: ("another", other_turn.turn_id, "pending"),
        made["id"]: ("s", turn.turn_id, "completed"),
    }
    assert {event.actor for event in trail(store)} == {"supervisor:test"}


@pytest.mark.spec("T7")
def test_the_turn_is_the_sessions_open_one_until_it_is_ended(
    plans: Plans, conversations: Conversations, turn: TurnScope
) -> None:
    plan(plans, turn, "A")
    assert conversations.open_turn(turn).id == turn.turn_id
    conversations.end_turn(turn, reason="a new prompt")
    assert conversations.current_turn("s") is None
    following = conversations.open_turn(turn)
    assert following.id != turn.turn_id
    assert call(plans, TurnScope("s", turn.actor, following.id), "list_todo")["items"] == []


@pytest.mark.spec("T14")
def test_unfinished_items_of_an_ended_turn_stay_as_they_are_and_no_longer_change(
    store: Store, plans: Plans, conversations: Conversations, turn: TurnScope
) -> None:
    first, second = plan(plans, turn, "A", "B")
    call(plans, turn, "start_todo", todoId=first)
    before = call(plans, turn, "list_todo")
    conversations.end_turn(turn, reason="a new prompt")
    with nothing_changes(store):
        for tool, arguments in (
            ("create_todo", {"items": [{"title": "C"}]}),
            ("start_todo", {"todoId": second}),
            ("complete_todo", {"todoId": first, "outcome": "done"}),
        ):
            with pytest.raises(IllegalTransition, match=r"has ended \(a new prompt\)"):
                call(plans, turn, tool, **arguments)
    assert call(plans, turn, "list_todo") == before


@pytest.mark.spec("T7")
def test_a_turn_that_is_not_the_sessions_own_is_not_found(
    store: Store, plans: Plans, turn: TurnScope, other_turn: TurnScope
) -> None:
    with nothing_changes(store):
        for turn_id in ("nothing", other_turn.turn_id):
            with pytest.raises(NotFound):
                plans.create(TurnScope("s", turn.actor, turn_id), [NewTodo("A")])


@pytest.mark.spec("T13")
def test_a_worker_cannot_create_start_or_end_a_todo(store: Store, plans: Plans, turn: TurnScope) -> None:
    (todo_id,) = plan(plans, turn, "A")
    worker = TurnScope("s", Actor(Role.WORKER, "coder"), turn.turn_id)
    with nothing_changes(store):
        with pytest.raises(NotAllowed, match="A worker may not create a plan todo"):
            plans.create(worker, [NewTodo("B")])
        with pytest.raises(NotAllowed, match="A worker may not start a plan todo"):
            plans.start(worker, todo_id)
        for action in (PlanAction.COMPLETE, PlanAction.CANCEL):
            with pytest.raises(NotAllowed, match=f"A worker may not {action} a plan todo"):
                plans.end(worker, todo_id, "done", action)


@pytest.mark.spec("T13")
def test_no_plan_tool_is_for_workers(plans: Plans) -> None:
    tools = plan_tools(lambda: plans)
    assert [tool.name for tool in tools] == ["create_todo", "list_todo", "start_todo", "wait_todo", "complete_todo"]
    assert all(Role.WORKER not in tool.roles and Role.SUPERVISOR in tool.roles for tool in tools)


def test_a_person_may_do_what_a_supervisor_may(plans: Plans, turn: TurnScope) -> None:
    person = TurnScope("s", Actor(Role.PERSON, "ada"), turn.turn_id)
    (todo_id,) = plan(plans, person, "A")
    call(plans, person, "start_todo", todoId=todo_id)
    assert call(plans, person, "complete_todo", todoId=todo_id, outcome="done")["remaining"] == 0
