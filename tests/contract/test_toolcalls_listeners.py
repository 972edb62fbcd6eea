"""Listeners are told everything, in order, and so is the trail (S9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from tests.conftest import StoppedClock
from tests.contract.toolcalls import Desk, Heard, request, run, steps

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import timestamp
from punchlist.storage import event_log
from punchlist.storage.store import Store
from punchlist.toolcalls.approval_store import approval_stream as question_stream
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.listeners import Listeners
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.stored_call import call_stream

pytestmark = pytest.mark.spec("S9")


def test_each_step_is_told_with_time_call_from_and_to(clock: StoppedClock) -> None:
    async def scene() -> None:
        async with Desk(clock=clock) as desk:
            await desk.do(request("look"))
            told = [
                (one.at, one.call.request.call_id, one.from_status, one.call.status) for one in desk.heard.transitions
            ]
            assert told == [
                (clock.now, "a", None, CallStatus.VALIDATING),
                (clock.now, "a", CallStatus.VALIDATING, CallStatus.SCHEDULED),
                (clock.now, "a", CallStatus.SCHEDULED, CallStatus.EXECUTING),
                (clock.now, "a", CallStatus.EXECUTING, CallStatus.SUCCESS),
            ]

    run(scene())


def test_updates_carry_the_calls_as_they_have_become(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"), request("look", {}, "b"))
            await desk.say("a")
            await desk.over()
            assert desk.heard.updates == [one.call for one in desk.heard.transitions]
            assert desk.heard.way("a") == [
                "validating",
                "scheduled",
                "awaiting_approval",
                "scheduled",
                "executing",
                "success",
            ]

    run(scene())


def test_completion_comes_once_when_all_have_ended_with_all_of_them(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            await desk.do(request("look", {}, "a"), request("fail", {}, "b"), request("unknown", {}, "c"))
            await desk.over()
            (told,) = desk.heard.completed
            assert sorted(call.request.call_id for call in told) == ["a", "b", "c"]
            await desk.do(request("look", {}, "d"))
            while len(desk.heard.completed) < 2:
                await desk.over()
            assert [call.request.call_id for call in desk.heard.completed[1]] == ["d"]

    run(scene())


def test_completion_waits_for_what_waits_for_a_person() -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"), request("look", {}, "b"))
            assert desk.heard.completed == []
            await desk.say("a", ApprovalOutcome.CANCEL)
            assert len(desk.heard.completed) == 1

    run(scene())


def test_what_is_told_as_complete_is_on_record(store: Store) -> None:
    async def scene() -> None:
        seen: list[list[str | None]] = []
        listeners = Listeners(on_all_tool_calls_complete=lambda _: seen.append([one.to_status for one in steps(store)]))
        async with Desk(store, listeners=listeners) as desk:
            await desk.do(request("look"))
        assert seen == [["validating", "scheduled", "executing", "success"]]

    run(scene())


@pytest.mark.parametrize("which", ["on_tool_calls_update", "on_all_tool_calls_complete", "on_transition", "on_output"])
def test_a_listener_that_fails_harms_nothing(store: Store, which: str) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug in the page")

    async def scene() -> None:
        heard = Heard().listeners()
        named = {name: getattr(heard, name) for name in Listeners.__slots__}
        async with Desk(store, listeners=Listeners(**{**named, which: broken})) as desk:
            calls = await desk.do(request("look"), request("speak", {"lines": ["x"]}, "b"))
            assert [call.status for call in calls] == [CallStatus.SUCCESS] * 2

    run(scene())
    assert len(steps(store)) == 8


def test_a_listener_may_schedule_more() -> None:
    async def scene() -> None:
        desk = Desk()
        ids = iter("bcd")

        def more(_: object) -> None:
            if (id := next(ids, None)) is not None:
                desk.scheduler.schedule(request("look", {"at": id}, id))
            else:
                desk.heard.all_over.set()

        object.__setattr__(desk.scheduler._listeners, "on_all_tool_calls_complete", more)
        async with desk:
            desk.scheduler.schedule(request("look"))
            await desk.over()
            assert desk.ran == ["it", "b", "c", "d"]

    run(scene())


def test_every_step_is_an_event_and_the_chain_is_whole(store: Store, clock: StoppedClock) -> None:
    async def scene() -> Heard:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(
                request("work", {"on": "1"}, "a"),
                request("work", {"on": "2"}, "b"),
                request("look", {}, "c", after=("a",)),
                request("fail", {}, "d"),
                request("unknown", {}, "e"),
            )
            clock.advance(seconds=7)
            await desk.say("a")
            await desk.say("b", ApprovalOutcome.CANCEL, reason="no")
            await desk.over()
            return desk.heard

    heard = run(scene())
    events = steps(store)
    assert [(event.subject, event.action, event.from_status, event.to_status, event.actor) for event in events] == [
        (step.call.request.call_id, step.action, step.from_status, step.call.status, str(step.actor))
        for step in heard.transitions
    ]
    assert [event.payload()["at"] for event in events] == [timestamp(one.at) for one in heard.transitions]
    with store.read() as tx:
        for name in (call_stream("s"), question_stream("a"), question_stream("b")):
            chain = event_log.read_stream(tx, name)
            assert chain
            assert list(event_log.broken_links(chain)) == []


def test_a_result_is_in_the_trail_by_its_hash_and_arguments_without_their_secrets(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            await desk.do(request("look", {"at": "x"}))

    run(scene())
    assert "result_sha256" in steps(store)[-1].payload()
    assert "saw x" not in steps(store)[-1].data


def test_a_call_that_another_schedulers_session_makes_has_its_own_stream(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as one, Desk(store) as two:
            await one.do(request("look", {}, "a"))
            await two.do(request("look", {}, "b"))

    run(scene())
    assert [event.subject for event in steps(store)] == ["a"] * 4 + ["b"] * 4
    assert list(event_log.broken_links(steps(store))) == []


class AsyncListener:
    async def __call__(self, *_: object) -> None: ...


async def asynchronous(*_: object) -> None: ...


@pytest.mark.parametrize("which", ["on_tool_calls_update", "on_all_tool_calls_complete", "on_transition", "on_output"])
@pytest.mark.parametrize("listener", [asynchronous, AsyncListener(), partial(asynchronous, 1)], ids=["f", "o", "p"])
def test_an_asynchronous_listener_is_refused(which: str, listener: Callable[..., object]) -> None:
    with pytest.raises(InvalidInput, match=f"{which}: must be a plain function"):
        Listeners(**{which: listener})


def test_a_coroutine_of_a_plain_listener_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with Desk(listeners=Listeners(on_transition=lambda _: asynchronous())) as desk:
            (call,) = await desk.do(request("look"))
            assert call.status is CallStatus.SUCCESS

    run(scene())
    assert "it returned a coroutine, which is not awaited" in caplog.text
