"""Cancelling one call, a batch, everything; tools that do not listen; time limits (S7)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.contract.toolcalls import Desk, request, run, soon, stored, way

from punchlist.errors import IllegalTransition, NotFound
from punchlist.kernel.cancellation import CancelSignal
from punchlist.storage.store import Store
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import CancelledToolCall, ErroredToolCall
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import Effect
from punchlist.tools.function_tool import tool

pytestmark = pytest.mark.spec("S7")


@pytest.fixture(autouse=True)
def little_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist.toolcalls.scheduler.GRACE", 0.05)


def test_one_running_call_is_cancelled_and_the_others_go_on(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule([request("hold", {"name": id}, id) for id in "ab"])
            await soon(desk.shop.began("b").wait())
            desk.scheduler.cancel("a", "changed my mind")
            desk.shop.gate("b").set()
            first, second = await soon(batch.ended())
            assert isinstance(first, CancelledToolCall)
            assert (first.reason, second.status) == ("changed my mind", CallStatus.SUCCESS)

    run(scene())
    assert way(store) == ["validating", "scheduled", "executing", "cancelled"]
    assert stored(store).explanation == "changed my mind"


@pytest.mark.parametrize("everything", [True, False])
def test_calls_in_every_state_are_cancelled(store: Store, everything: bool) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, concurrent=1) as desk:
            batch = desk.scheduler.schedule(
                [
                    request("hold", {"name": "runs"}, "runs"),
                    request("hold", {"name": "line"}, "line"),
                    request("work", {}, "asked"),
                    request("look", {}, "depends", after=("asked",)),
                    request("look", {"at": "key"}, "key", writes="k"),
                ]
            )
            await soon(desk.shop.began("runs").wait())
            desk.scheduler.cancel_all("enough") if everything else batch.cancel("enough")
            calls = await soon(batch.ended())
            assert {call.status for call in calls} == {CallStatus.CANCELLED}
            assert desk.ran == ["runs"]
            (after,) = await desk.do(request("look", {}, "after", writes="k"))
            assert after.status is CallStatus.SUCCESS

    run(scene())


def test_a_signal_ends_its_batch_and_no_other() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            parent = CancelSignal()
            mine, other = CancelSignal(parent), CancelSignal()
            first = desk.scheduler.schedule(request("hold", {"name": "a"}, "a"), mine)
            second = desk.scheduler.schedule(request("hold", {"name": "b"}, "b"), other)
            await soon(desk.shop.began("b").wait())
            parent.set("the person pressed Esc")
            (call,) = await soon(first.ended())
            assert isinstance(call, CancelledToolCall)
            assert call.reason == "the person pressed Esc"
            desk.shop.gate("b").set()
            assert [call.status for call in await soon(second.ended())] == [CallStatus.SUCCESS]

    run(scene())


def test_what_has_ended_or_never_was_cannot_be_cancelled() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            await desk.do(request("look"))
            with pytest.raises(IllegalTransition, match="has already ended"):
                desk.scheduler.cancel("a")
            with pytest.raises(NotFound):
                desk.scheduler.cancel("b")

    run(scene())


def test_cancelling_twice_is_once(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule(request("hold", {"name": "x"}))
            await soon(desk.shop.began("x").wait())
            desk.scheduler.cancel("a", "first")
            desk.scheduler.cancel("a", "second")
            (call,) = await soon(batch.ended())
            assert isinstance(call, CancelledToolCall)
            assert call.reason == "first"

    run(scene())
    assert way(store).count("cancelled") == 1


def test_a_call_that_is_cancelled_before_it_is_on_record_does_not_run(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule(request("look"))
            assert batch.calls[0].status is CallStatus.EXECUTING
            batch.cancel()
            (call,) = await soon(batch.ended())
            assert (call.status, desk.ran) == (CallStatus.CANCELLED, [])

    run(scene())
    assert stored(store).status == "cancelled"


def test_a_call_that_is_cancelled_at_once_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist.toolcalls.scheduler.GRACE", 30)

    async def scene() -> None:
        desk = Desk()
        batch = desk.scheduler.schedule(request("look"))
        batch.cancel()
        await soon(batch.ended(), 1)

    run(scene())


def test_a_tool_ends_in_good_order_before_its_call_does() -> None:
    async def scene() -> None:
        tidy: list[str] = []
        began = asyncio.Event()

        @tool
        async def careful() -> str:
            try:
                began.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                tidy.append("done")
            return ""

        async with Desk(tools=[careful]) as desk:
            batch = desk.scheduler.schedule(request("careful"))
            await began.wait()
            batch.cancel()
            await soon(batch.ended())
            assert tidy == ["done"]

    run(scene())


def test_a_tool_that_does_not_listen_holds_nobody_up(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, concurrent=1) as desk:
            batch = desk.scheduler.schedule(
                [request("ignore", {"name": "deaf"}, "a", writes="k"), request("look", {}, "b", writes="k")]
            )
            await soon(desk.shop.began("deaf").wait())
            desk.scheduler.cancel("a")
            first, second = await soon(batch.ended())
            assert (first.status, second.status) == (CallStatus.CANCELLED, CallStatus.SUCCESS)
            assert desk.shop.inside == {"deaf"}
            desk.shop.gate("deaf").set()

    run(scene())
    assert way(store)[-2:] == ["executing", "cancelled"]


def test_the_result_of_a_tool_that_did_not_listen_is_not_taken_later(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule(request("ignore", {"name": "deaf"}))
            await soon(desk.shop.began("deaf").wait())
            task = batch._entries[0].task
            batch.cancel()
            (before,) = await soon(batch.ended())
            desk.shop.gate("deaf").set()
            assert task is not None
            await soon(task)
            assert batch.calls == [before]

    run(scene())
    assert way(store).count("cancelled") == 1
    assert "success" not in way(store)


def test_a_tool_that_answers_a_cancellation_with_a_result_is_cancelled_all_the_same() -> None:
    async def scene() -> None:
        @tool
        async def stubborn() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "a result"
            return ""

        async with Desk(tools=[stubborn]) as desk:
            batch = desk.scheduler.schedule(request("stubborn"))
            await asyncio.sleep(0)
            batch.cancel("enough")
            (call,) = await soon(batch.ended())
            assert call.status is CallStatus.CANCELLED

    run(scene())


def test_a_thread_that_cannot_be_stopped_holds_nobody_up() -> None:
    async def scene() -> None:
        began, enough = threading.Event(), threading.Event()

        @tool
        def block() -> str:
            began.set()
            enough.wait(60)
            return ""

        async with Desk(tools=[block], concurrent=1) as desk:
            batch = desk.scheduler.schedule([request("block", {}, "a"), request("look", {}, "b")])
            await asyncio.to_thread(began.wait, 20)
            desk.scheduler.cancel("a")
            calls = await soon(batch.ended())
            assert [call.status for call in calls] == [CallStatus.CANCELLED, CallStatus.SUCCESS]
            enough.set()

    run(scene())


@pytest.mark.parametrize("whose", ["request", "tool", "scheduler"])
def test_a_call_that_takes_too_long_is_ended_and_says_so(store: Store, whose: str) -> None:
    @tool(effect=Effect.READ, time_limit=0.05 if whose == "tool" else None)
    async def slow() -> str:
        await asyncio.Event().wait()
        return ""

    async def scene() -> None:
        async with Desk(store, tools=[slow], time_limit=0.05 if whose == "scheduler" else 60) as desk:
            (call,) = await desk.do(request("slow", timeout=0.05 if whose == "request" else None))
            assert isinstance(call, ErroredToolCall)
            assert call.error == ("timed_out", "The call exceeded its time limit of 0.05 s and was ended.")

    run(scene())
    assert (stored(store).status, stored(store).error_code) == ("error", "timed_out")


def test_a_tool_that_does_not_listen_is_given_up_when_time_is_up() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            (call,) = await desk.do(request("ignore", {"name": "deaf"}, timeout=0.02))
            assert isinstance(call, ErroredToolCall)
            assert call.error.code == "timed_out"
            desk.shop.gate("deaf").set()

    run(scene())


def test_each_running_call_has_its_own_limit() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            batch = desk.scheduler.schedule(
                [
                    request("hold", {"name": id}, id, timeout=limit)
                    for id, limit in (("a", 60), ("b", 0.02), ("c", 0.04))
                ]
            )
            await soon(desk.heard_of("b", "c"))
            assert [call.status.value for call in batch.calls] == ["executing", "error", "error"]
            desk.shop.gate("a").set()
            await soon(batch.ended())

    run(scene())


def test_whatever_a_tool_raises_ends_its_call() -> None:
    class Odd(BaseException):
        pass

    @tool
    async def odd() -> str:
        raise Odd("not even an Exception")

    async def scene() -> None:
        async with Desk(tools=[odd]) as desk:
            (call,) = await soon(desk.scheduler.schedule(request("odd")).ended(), 1)
            assert isinstance(call, ErroredToolCall)

    run(scene())


@pytest.mark.parametrize("error", [SystemExit(3), RecursionError(), MemoryError(), StopIteration(1), KeyError("x")])
def test_a_tool_that_raises_ends_its_call_with_an_error(error: BaseException) -> None:
    @tool
    def odd() -> str:
        raise error

    async def scene() -> Any:
        async with Desk(tools=[odd]) as desk:
            (call,) = await desk.do(request("odd"))
            assert isinstance(call, ErroredToolCall)
            assert call.error.code == "tool_crashed"
            assert type(error).__name__ in call.error.message

    run(scene())


def test_whatever_the_reason_the_cancellation_is_on_record(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule(request("hold", {"name": "x"}))
            await soon(desk.shop.began("x").wait())
            desk.scheduler.cancel("a", "a\x00b \x1b[31m")
            await soon(batch.ended())

    run(scene())
    assert stored(store).status == "cancelled"


def test_closing_ends_what_runs_and_keeps_what_waits_for_a_person(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            desk.scheduler.schedule([request("hold", {"name": "x"}, "a"), request("work", {}, "b")])
            await soon(desk.shop.began("x").wait())

    run(scene())
    assert (stored(store, "a").status, stored(store, "a").explanation) == ("cancelled", "the program is shutting down")
    assert stored(store, "b").status == "awaiting_approval"


def test_closing_without_a_record_ends_what_waits_too() -> None:
    async def scene() -> None:
        desk = Desk(None, Mode.DEFAULT)
        batch = desk.scheduler.schedule(request("work"))
        await desk.close()
        assert batch.calls[0].status is CallStatus.CANCELLED

    run(scene())


def test_a_long_chain_can_be_closed(store: Store) -> None:
    async def scene() -> bool:
        desk = Desk(store)
        chain = [request("hold", {"name": "x"}, "n0")]
        chain += [request("look", {"at": f"n{n}"}, f"n{n}", after=(f"n{n - 1}",)) for n in range(1, 1_200)]
        desk.scheduler.schedule(list(reversed(chain)))
        await soon(desk.shop.began("x").wait())
        try:
            await desk.close()
        except RecursionError:
            return False
        return True

    # Said outside, since a traceback of a thousand calls takes a minute to print.
    assert run(scene())
