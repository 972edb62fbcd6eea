"""Seven states, the steps between them, and no others (S1)."""

from __future__ import annotations

from dataclasses import fields
from itertools import product

import pytest
from tests.contract.front import nothing_changes
from tests.contract.toolcalls import AGENT, Desk, request, run, steps, stored, way

from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.lifecycle import NEW
from punchlist.storage.store import Store
from punchlist.toolcalls import model
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.batch import BatchedCall
from punchlist.toolcalls.lifecycle import TOOL_CALL, CallAction, CallStatus
from punchlist.toolcalls.policy import Mode

# Written down again on purpose: the seed's diagram, and what the specification adds to it.
SEED = {
    ("(new)", "receive", "validating"),
    ("validating", "accept", "scheduled"),
    ("validating", "reject", "error"),
    ("scheduled", "execute", "executing"),
    ("executing", "succeed", "success"),
    ("executing", "fail", "error"),
    ("executing", "cancel", "cancelled"),
    ("scheduled", "ask", "awaiting_approval"),
    ("awaiting_approval", "approve", "scheduled"),
    ("awaiting_approval", "deny", "cancelled"),
}
ADDED = {(state, "cancel", "cancelled") for state in ("validating", "scheduled", "awaiting_approval")}
LEGAL = {(source, action): target for source, action, target in SEED | ADDED}
ILLEGAL = [pair for pair in product([NEW, *CallStatus], CallAction) if pair not in LEGAL]


@pytest.mark.spec("S1")
def test_the_table_is_the_seeds_diagram_and_cancel_from_each_open_state() -> None:
    assert {(str(source), str(action)): str(target) for (source, action), target in TOOL_CALL.table.items()} == LEGAL


@pytest.mark.spec("S1")
@pytest.mark.parametrize(("state", "action"), ILLEGAL)
def test_a_step_that_is_not_in_the_table_is_refused(state: str, action: CallAction) -> None:
    (role, *_) = TOOL_CALL.allowed[action]
    with pytest.raises(IllegalTransition, match=f"Cannot {action} a tool call that is"):
        TOOL_CALL.advance(state, action, role)


@pytest.mark.spec("S1", "S5")
@pytest.mark.parametrize("action", [CallAction.APPROVE, CallAction.DENY])
@pytest.mark.parametrize("role", [Role.SUPERVISOR, Role.WORKER, Role.SYSTEM])
def test_only_a_person_answers(action: CallAction, role: Role) -> None:
    with pytest.raises(NotAllowed):
        TOOL_CALL.advance(CallStatus.AWAITING_APPROVAL, action, role)


@pytest.mark.spec("S1")
def test_each_state_has_the_fields_that_it_needs_and_no_others() -> None:
    found = {kind.status.value: {field.name for field in fields(kind)} for kind in model.ToolCall.__args__}
    assert found == {
        "validating": {"request"},
        "scheduled": {"request", "tool", "permission"},
        "awaiting_approval": {"request", "tool", "question"},
        "executing": {"request", "tool", "started_at"},
        "success": {"request", "tool", "result", "started_at", "ended_at"},
        "error": {"request", "error", "ended_at"},
        "cancelled": {"request", "reason", "ended_at", "not_started"},
    }


async def brought_to(desk: Desk, status: CallStatus) -> BatchedCall:
    """A call `a` in this state, which is on record."""
    if status is CallStatus.SCHEDULED:
        desk.scheduler.schedule(request("hold", {"name": "first"}, "first"))
    name, arguments = {
        CallStatus.AWAITING_APPROVAL: ("work", {}),
        CallStatus.SUCCESS: ("look", {}),
        CallStatus.ERROR: ("fail", {}),
    }.get(status, ("hold", {"name": "it"}))
    batch = desk.scheduler.schedule(request(name, arguments))
    if status in (CallStatus.EXECUTING, CallStatus.CANCELLED):
        await desk.shop.began("it").wait()
    if status is CallStatus.CANCELLED:
        batch.cancel()
    if status in (CallStatus.SUCCESS, CallStatus.ERROR, CallStatus.CANCELLED):
        await batch
    assert desk.recorder
    await desk.recorder.flushed()
    (entry,) = batch._entries
    assert entry.call.status is status
    return entry


@pytest.mark.spec("S1")
@pytest.mark.parametrize("status", [status for status in CallStatus if status is not CallStatus.VALIDATING])
def test_an_illegal_step_changes_nothing_in_memory_or_on_record(store: Store, status: CallStatus) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, concurrent=1) as desk:
            entry = await brought_to(desk, status)
            before, told = entry.call, len(desk.heard.transitions)
            with nothing_changes(store):
                for action in [action for state, action in ILLEGAL if state == status]:
                    by = next(iter(TOOL_CALL.allowed[action]))
                    with pytest.raises(IllegalTransition):
                        desk.scheduler._calls.advance(entry, action, before, desk.scheduler._clock(), Actor(by, "test"))
                assert desk.recorder
                await desk.recorder.flushed()
            assert entry.call is before
            assert len(desk.heard.transitions) == told
            assert stored(store).status == status

    run(scene())


@pytest.mark.spec("S1", "S9")
def test_every_legal_step_is_taken_and_recorded(store: Store) -> None:
    """All but cancel while validating, which is over before anybody can ask for it."""

    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, concurrent=1) as desk:
            await desk.do(request("look", {}, "good"), request("fail", {}, "bad"), request("nothing", {}, "unknown"))
            await desk.waiting(*[request("work", {"on": name}, name) for name in ("yes", "no", "drop")])
            await desk.say("yes")
            await desk.say("no", ApprovalOutcome.CANCEL)
            desk.scheduler.cancel("drop")
            desk.scheduler.schedule([request("hold", {"name": name}, name) for name in ("run", "line")])
            await desk.shop.began("run").wait()
            desk.scheduler.cancel("line")
            desk.scheduler.cancel("run")
            await desk.over()

    run(scene())
    taken = {(event.from_status or NEW, event.action, event.to_status) for event in steps(store)}
    assert taken == SEED | ADDED - {("validating", "cancel", "cancelled")}
    assert way(store, "yes") == ["validating", "scheduled", "awaiting_approval", "scheduled", "executing", "success"]
    assert {event.conversation_id for event in steps(store)} == {AGENT.conversation_id}


@pytest.mark.spec("S1", "S7")
def test_a_call_can_be_cancelled_while_it_is_validated(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            now = desk.scheduler._clock()
            batch = desk.scheduler.schedule([])
            desk.scheduler._calls.receive(request("look"), batch, now, AGENT.actor)
            desk.scheduler.cancel_all("enough")
            (over,) = await batch
            assert (over.status, desk.ran) == (CallStatus.CANCELLED, [])

    run(scene())
    assert way(store) == ["validating", "cancelled"]
