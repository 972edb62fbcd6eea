"""The four methods of `CoreToolScheduler` (S2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.contract.front import nothing_changes
from tests.contract.toolcalls import ANN, BOB, Desk, approval, request, run, soon, stored, way

from punchlist.errors import IllegalTransition, InvalidInput, NotFound
from punchlist.kernel.cancellation import CancelSignal
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import CancelledToolCall, SuccessfulToolCall
from punchlist.toolcalls.policy import Mode

pytestmark = pytest.mark.spec("S2")


def test_one_request_gives_one_call(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            (call,) = await desk.scheduler.schedule(request("look"))
            assert isinstance(call, SuccessfulToolCall)
            assert call.result.text == "saw it"

    run(scene())
    assert stored(store).result == "saw it"


def test_several_requests_give_their_calls_in_the_same_order(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            calls = await desk.do(*[request("look", {"at": name}, name) for name in "edcba"])
            assert [call.request.call_id for call in calls] == list("edcba")

    run(scene())


def test_no_requests_are_over_at_once() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            assert await desk.do() == []

    run(scene())


def test_a_batch_with_an_id_that_cannot_be_is_refused_whole(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            await desk.do(request("look", {}, "old"))
            with nothing_changes(store):
                for ids in (["x", "x"], ["x", "old"], ["x", ""], ["x", "../y"], ["x", "y\n"], ["x", "y" * 101]):
                    with pytest.raises(InvalidInput, match="call_id"):
                        desk.scheduler.schedule([request("look", {}, id) for id in ids])
            assert desk.ran == ["it"]
            assert desk.scheduler.calls == []

    run(scene())


def test_an_id_that_another_session_has_used_does_not_run(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as first, Desk(store) as second:
            await first.do(request("look", {"at": "first"}))
            (call,) = await second.do(request("look", {"at": "second"}))
            assert (call.status, second.ran) == (CallStatus.ERROR, [])

    run(scene())
    assert stored(store).result == "saw first"


def test_a_signal_that_is_set_already_lets_nothing_run(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            signal = CancelSignal()
            signal.set("enough")
            calls = await desk.scheduler.schedule([request("look", {}, "a"), request("look", {"at": "b"}, "b")], signal)
            assert [(call.status, getattr(call, "reason", "")) for call in calls] == [
                (CallStatus.CANCELLED, "enough")
            ] * 2
            assert desk.ran == []

    run(scene())
    assert way(store) == ["validating", "scheduled", "cancelled"]


def test_what_a_set_signal_has_ended_holds_no_key() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            signal = CancelSignal()
            signal.set()
            await desk.scheduler.schedule(request("edit", {"path": "x"}, "a"), signal)
            (call,) = await soon(desk.scheduler.schedule(request("edit", {"path": "x"}, "b")).ended(), 1)
            assert call.status is CallStatus.SUCCESS

    run(scene())


def test_a_signal_that_is_set_later_ends_what_is_open(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, concurrent=1) as desk:
            signal = CancelSignal()
            batch = desk.scheduler.schedule([request("hold", {"name": id}, id) for id in "ab"], signal)
            await soon(desk.shop.began("a").wait())
            signal.set("enough")
            assert {call.status for call in await soon(batch.ended())} == {CallStatus.CANCELLED}
            assert desk.ran == ["a"]

    run(scene())


def test_a_signal_that_is_set_when_all_is_over_changes_nothing(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            signal = CancelSignal()
            await desk.scheduler.schedule(request("look"), signal)
            with nothing_changes(store):
                signal.set()
                assert desk.recorder
                await desk.recorder.flushed()

    run(scene())


def test_a_yes_runs_the_call_and_is_on_record(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            assert desk.ran == []
            await desk.say("a")
            await desk.over()
            assert desk.ran == ["it"]

    run(scene())
    assert (approval(store).status, approval(store).answered_by) == ("approved", "person:ann")


@pytest.mark.parametrize("asynchronous", [True, False])
def test_on_confirm_hears_the_answer_before_the_call_runs(asynchronous: bool) -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            heard: list[tuple[ApprovalOutcome, Any, list[str]]] = []

            def on_confirm(outcome: ApprovalOutcome, payload: Mapping[str, Any]) -> None:
                heard.append((outcome, payload["by"], list(desk.ran)))

            async def on_confirm_later(outcome: ApprovalOutcome, payload: Mapping[str, Any]) -> None:
                await asyncio.sleep(0)
                on_confirm(outcome, payload)

            await desk.waiting(request("work"))
            await desk.scheduler.handle_confirmation_response(
                "a", on_confirm_later if asynchronous else on_confirm, ApprovalOutcome.PROCEED_ONCE, None, {"by": ANN}
            )
            await desk.over()
            assert heard == [(ApprovalOutcome.PROCEED_ONCE, ANN, [])]
            assert desk.ran == ["it"]

    run(scene())


def test_an_on_confirm_that_fails_leaves_the_call_waiting(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))

            def on_confirm(outcome: ApprovalOutcome, payload: Mapping[str, Any]) -> None:
                raise LookupError("the dialog is gone")

            with nothing_changes(store), pytest.raises(LookupError):
                await desk.scheduler.handle_confirmation_response("a", on_confirm, ApprovalOutcome.PROCEED_ONCE)
            await desk.say("a")
            await desk.over()
            assert desk.ran == ["it"]

    run(scene())


def test_a_second_answer_while_on_confirm_thinks_makes_the_first_too_late() -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            thinking, enough = asyncio.Event(), asyncio.Event()

            async def on_confirm(outcome: ApprovalOutcome, payload: Mapping[str, Any]) -> None:
                thinking.set()
                await enough.wait()

            await desk.waiting(request("work"))
            slow = asyncio.create_task(
                desk.scheduler.handle_confirmation_response("a", on_confirm, ApprovalOutcome.PROCEED_ONCE)
            )
            await thinking.wait()
            await desk.say("a", ApprovalOutcome.CANCEL, by=BOB)
            enough.set()
            with pytest.raises(IllegalTransition):
                await slow
            assert desk.ran == []

    run(scene())


def test_the_second_answer_is_refused_and_changes_nothing(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            await desk.say("a")
            await desk.over()
            with nothing_changes(store), pytest.raises(IllegalTransition, match="does not wait for approval"):
                await desk.say("a", ApprovalOutcome.CANCEL)
            assert desk.ran == ["it"]

    run(scene())


def test_what_does_not_wait_cannot_be_answered(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            desk.scheduler.schedule(request("hold", {"name": "x"}))
            await desk.shop.began("x").wait()
            with pytest.raises(IllegalTransition, match="it is executing"):
                await desk.say("a")
            with pytest.raises(NotFound):
                await desk.say("unknown")

    run(scene())


def test_an_answer_given_at_once_is_taken(store: Store) -> None:
    """Before anything of the call is on record."""

    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            desk.scheduler.schedule(request("work"))
            await desk.scheduler.handle_confirmation_response("a", None, ApprovalOutcome.PROCEED_ONCE)
            await desk.over()
            assert desk.ran == ["it"]

    run(scene())
    assert approval(store).status == "approved"


def test_a_yes_with_a_signal_that_is_set_is_a_cancellation(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = desk.scheduler.schedule(request("work"))
            await batch.settled()
            signal = CancelSignal()
            signal.set("never mind")
            await desk.scheduler.handle_confirmation_response("a", None, ApprovalOutcome.PROCEED_ONCE, signal)
            (call,) = await batch
            assert isinstance(call, CancelledToolCall)
            assert (call.reason, desk.ran) == ("never mind", [])

    run(scene())
    assert approval(store).status == "withdrawn"


def test_the_signal_of_an_answer_ends_the_call_that_it_let_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist.toolcalls.scheduler.GRACE", 0.05)

    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            signal = CancelSignal()
            batch = desk.scheduler.schedule(request("work"))
            await batch.settled()
            await desk.scheduler.handle_confirmation_response("a", None, ApprovalOutcome.PROCEED_ONCE, signal)
            signal.set("stop it")
            (call,) = await soon(batch.ended())
            assert (call.status, desk.ran) == (CallStatus.CANCELLED, [])

    run(scene())


def test_attempting_with_a_set_signal_cancels_what_is_scheduled_only() -> None:
    async def scene() -> None:
        async with Desk(concurrent=1) as desk:
            batch = desk.scheduler.schedule([request("hold", {"name": id}, id) for id in "ab"])
            await desk.shop.began("a").wait()
            signal = CancelSignal()
            signal.set("no more")
            desk.scheduler.attempt_execution_of_scheduled_calls(signal)
            assert [call.status for call in batch.calls] == [CallStatus.EXECUTING, CallStatus.CANCELLED]
            desk.shop.gate("a").set()
            assert [call.status for call in await soon(batch.ended())] == [CallStatus.SUCCESS, CallStatus.CANCELLED]

    run(scene())


def test_attempting_again_starts_nothing_twice() -> None:
    async def scene() -> None:
        async with Desk(concurrent=2) as desk:
            batch = desk.scheduler.schedule([request("hold", {"name": id}, id) for id in "abc"])
            for _ in range(5):
                desk.scheduler.attempt_execution_of_scheduled_calls()
            await desk.shop.began("b").wait()
            assert sorted(desk.ran) == ["a", "b"]
            for id in "abc":
                desk.shop.gate(id).set()
            await soon(batch.ended())
            assert sorted(desk.ran) == ["a", "b", "c"]

    run(scene())


def test_completion_is_told_when_nothing_is_open_and_only_once(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            desk.scheduler.schedule(request("hold", {"name": "x"}))
            assert desk.scheduler.check_and_notify_completion() is False
            desk.shop.gate("x").set()
            await desk.over()
            assert desk.scheduler.check_and_notify_completion() is True
            assert [[call.request.call_id for call in told] for told in desk.heard.completed] == [["a"]]

    run(scene())
