"""What runs when: limits, dependencies, priorities, keys, identical calls (S6)."""

from __future__ import annotations

import asyncio

import pytest
from tests.contract.toolcalls import Desk, request, run, soon, stored, until, way

from punchlist.storage.store import Store
from punchlist.toolcalls import batch as batches
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.batch import BatchedCall, CallBatch
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import CancelledToolCall, ErroredToolCall, SuccessfulToolCall, ToolCallRequest
from punchlist.toolcalls.policy import Mode, Rule, Verdict
from punchlist.toolcalls.tool import ToolFailure
from punchlist.tools.function_tool import tool

pytestmark = pytest.mark.spec("S6")


def hold(name: str, after: str = "", priority: int = 0, reads: str = "", writes: str = "") -> ToolCallRequest:
    depends_on = tuple(after.split())
    return request("hold", {"name": name}, name, after=depends_on, priority=priority, reads=reads, writes=writes)


async def one_by_one(desk: Desk, names: list[str]) -> None:
    """Open the gates in this order, each when its call has begun."""
    for name in names:
        await soon(desk.shop.began(name).wait())
        desk.shop.gate(name).set()


def reasons(batch: CallBatch) -> list[str]:
    return [call.reason for call in batch.calls if isinstance(call, CancelledToolCall)]


def test_independent_calls_run_at_the_same_time(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule([hold(name) for name in "abcde"])
            for name in "abcde":
                await soon(desk.shop.began(name).wait())
            assert desk.shop.inside == set("abcde")
            for name in "abcde":
                desk.shop.gate(name).set()
            await soon(batch.ended())

    run(scene())


@pytest.mark.parametrize("most", [1, 3])
def test_never_more_than_the_limit_run_at_once(store: Store, most: int) -> None:
    async def scene() -> None:
        async with Desk(store, concurrent=most) as desk:
            names = [f"n{number}" for number in range(12)]
            batch = desk.scheduler.schedule([hold(name) for name in names])
            await one_by_one(desk, names)
            await soon(batch.ended())
            assert desk.shop.most_inside == most
            assert desk.ran == names

    run(scene())


def test_the_limit_holds_over_several_batches() -> None:
    async def scene() -> None:
        async with Desk(concurrent=2) as desk:
            batches = [desk.scheduler.schedule(hold(name)) for name in "abcd"]
            await one_by_one(desk, list("abcd"))
            for batch in batches:
                await soon(batch.ended())
            assert desk.shop.most_inside == 2

    run(scene())


def test_the_more_urgent_goes_first_and_then_whoever_came_first() -> None:
    async def scene() -> None:
        async with Desk(concurrent=1) as desk:
            first = desk.scheduler.schedule(hold("first"))
            await desk.shop.began("first").wait()
            batch = desk.scheduler.schedule([hold("a"), hold("b", priority=5), hold("c", priority=-5), hold("d")])
            urgent = desk.scheduler.schedule(hold("u", priority=9))
            await one_by_one(desk, ["first", "u", "b", "a", "d", "c"])
            await soon(first.ended())
            await soon(urgent.ended())
            await soon(batch.ended())
            assert desk.ran == ["first", "u", "b", "a", "d", "c"]

    run(scene())


# --- dependencies ----------------------------------------------------------------------------------------------


def test_a_call_runs_after_those_that_it_depends_on(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule([hold("c", after="a b"), hold("b", after="a"), hold("a")])
            await one_by_one(desk, ["a", "b", "c"])
            assert {call.status for call in await soon(batch.ended())} == {CallStatus.SUCCESS}
            assert desk.ran == ["a", "b", "c"]

    run(scene())


def test_a_call_may_depend_on_one_of_an_earlier_batch() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            first = desk.scheduler.schedule(hold("a"))
            second = desk.scheduler.schedule(hold("b", after="a"))
            await desk.shop.began("a").wait()
            assert desk.ran == ["a"]
            await one_by_one(desk, ["a", "b"])
            await soon(first.ended())
            await soon(second.ended())
            (third,) = await desk.do(request("look", {}, "c", after=("a", "b")))
            assert third.status is CallStatus.SUCCESS

    run(scene())


def test_what_depends_on_a_failed_call_is_cancelled_and_says_so(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule(
                [
                    request("fail", {"why": "no disk"}, "a"),
                    request("look", {"at": "b"}, "b", after=("a",)),
                    request("look", {"at": "c"}, "c", after=("b",)),
                    request("look", {"at": "d"}, "d"),
                ]
            )
            await soon(batch.ended())
            assert reasons(batch)[0] == "It depends on a (fail), which failed: no disk"
            assert reasons(batch)[1].startswith("It depends on b (look), which was cancelled")
            assert desk.ran == ["no disk", "d"]
            (late,) = await desk.do(request("look", {"at": "e"}, "e", after=("a",)))
            assert isinstance(late, CancelledToolCall)
            assert late.reason == "It depends on a, which ended with error."

    run(scene())
    assert stored(store, "c").status == "cancelled"


def test_what_depends_on_a_cancelled_or_refused_call_is_cancelled() -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            batch = desk.scheduler.schedule(
                [
                    hold("a"),
                    request("look", {"at": "b"}, "b", after=("a",)),
                    request("unknown", {}, "c"),
                    request("look", {"at": "d"}, "d", after=("c",)),
                    request("work", {}, "e"),
                    request("look", {"at": "f"}, "f", after=("e",)),
                ]
            )
            await desk.shop.began("a").wait()
            desk.scheduler.cancel("a", "enough")
            await desk.say("e", ApprovalOutcome.CANCEL)
            calls = await soon(batch.ended())
            assert [call.status.value for call in calls] == [
                "cancelled",
                "cancelled",
                "error",
                "cancelled",
                "cancelled",
                "cancelled",
            ]
            assert desk.ran == ["a"]

    run(scene())


def test_a_failure_that_reaches_a_call_on_two_ways_ends_it_once_and_lets_others_run(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, concurrent=1) as desk:
            batch = desk.scheduler.schedule(
                [
                    request("fail", {}, "a"),
                    request("look", {"at": "b"}, "b", after=("a",)),
                    request("look", {"at": "c"}, "c", after=("a", "b")),
                    request("look", {"at": "d"}, "d"),
                ]
            )
            calls = await soon(batch.ended(), 2)
            assert [call.status.value for call in calls] == ["error", "cancelled", "cancelled", "success"]

    run(scene())
    assert way(store, "c")[-1] == "cancelled"


def test_a_refusal_that_reaches_a_call_on_two_ways_ends_it_once() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            calls = await desk.do(
                request("look", {"at": "b"}, "b", after=("a",)),
                request("look", {"at": "c"}, "c", after=("a", "b")),
                request("unknown", {}, "a"),
            )
            assert [call.status.value for call in calls] == ["cancelled", "cancelled", "error"]

    run(scene())


def test_a_dependency_named_twice_counts_once() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            await desk.do(request("look", {}, "a"), request("edit", {"path": "x"}, "b", after=("a", "a")))
            (call,) = await soon(desk.scheduler.schedule(request("edit", {"path": "x"}, "c")).ended(), 1)
            assert call.status is CallStatus.SUCCESS

    run(scene())


def test_an_unknown_dependency_is_an_error_that_names_it() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            bad, after, good = await desk.do(
                request("look", {"at": "a"}, "a", after=("nowhere",)),
                request("look", {"at": "b"}, "b", after=("a",)),
                request("look", {"at": "c"}, "c"),
            )
            assert isinstance(bad, ErroredToolCall)
            assert bad.error.message == "depends_on: there is no call 'nowhere'"
            assert (after.status, good.status) == (CallStatus.CANCELLED, CallStatus.SUCCESS)
            assert desk.ran == ["c"]

    run(scene())


def test_calls_that_wait_for_each_other_are_errors_that_show_the_circle(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            calls = await desk.do(
                request("look", {"at": "a"}, "a", after=("c",)),
                request("look", {"at": "b"}, "b", after=("a",)),
                request("look", {"at": "c"}, "c", after=("b",)),
                request("look", {"at": "me"}, "me", after=("me",)),
                request("look", {"at": "d"}, "d", after=("a",)),
                request("look", {"at": "e"}, "e"),
            )
            assert [call.status.value for call in calls] == [*["error"] * 4, "cancelled", "success"]
            assert isinstance(calls[0], ErroredToolCall)
            assert "depend on each other: a → c → b → a" in calls[0].error.message
            assert desk.ran == ["e"]

    run(scene())


def test_a_thousand_calls_one_after_the_other() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            chain = [request("look", {"at": "n0"}, "n0")]
            chain += [request("look", {"at": f"n{n}"}, f"n{n}", after=(f"n{n - 1}",)) for n in range(1, 2_000)]
            await desk.do(*reversed(chain))
            assert desk.ran == [f"n{n}" for n in range(2_000)]

    run(scene())


def test_many_ways_to_one_call_are_not_all_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = 0, batches._is_settled

    def counted(entry: BatchedCall) -> bool:
        nonlocal looks
        looks += 1
        assert looks < 10_000
        return look(entry)

    async def scene() -> None:
        async with Desk() as desk:
            layers = [hold("a0"), hold("b0")]
            for n in range(1, 20):
                before = (f"a{n - 1}", f"b{n - 1}")
                layers += [request("look", {"at": f"{x}{n}"}, f"{x}{n}", after=before) for x in "ab"]
            batch = desk.scheduler.schedule(layers)
            await soon(desk.shop.began("b0").wait())
            batch._entries.reverse()
            monkeypatch.setattr(batches, "_is_settled", counted)
            resting = asyncio.ensure_future(batch.settled())
            desk.shop.gate("a0").set()
            desk.shop.gate("b0").set()
            await soon(resting)

    run(scene())


# --- keys ----------------------------------------------------------------------------------------------------------


def test_two_writers_of_one_key_never_overlap(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            names = [f"w{n}" for n in range(6)]
            batch = desk.scheduler.schedule([hold(name, writes="k") for name in names])
            await one_by_one(desk, names)
            await soon(batch.ended())
            assert (desk.shop.most_inside, desk.ran) == (1, names)

    run(scene())


def test_readers_of_one_key_overlap_and_a_writer_waits_for_all_of_them() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            batch = desk.scheduler.schedule(
                [hold("r1", reads="k"), hold("r2", reads="k"), hold("w", writes="k"), hold("r3", reads="k")]
            )
            await soon(desk.shop.began("r2").wait())
            assert desk.shop.inside == {"r1", "r2"}
            desk.shop.gate("r1").set()
            await until(lambda: desk.shop.inside == {"r2"})
            desk.shop.gate("r2").set()
            await soon(desk.shop.began("w").wait())
            assert desk.shop.inside == {"w"}
            await one_by_one(desk, ["w", "r3"])
            await soon(batch.ended())
            assert desk.ran == ["r1", "r2", "w", "r3"]

    run(scene())


def test_calls_with_keys_in_opposite_order_do_not_block_each_other() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            batch = desk.scheduler.schedule(
                [
                    hold("a", writes="x y"),
                    hold("b", writes="y x"),
                    hold("c", reads="x", writes="y z"),
                    hold("d", writes="z"),
                ]
            )
            await one_by_one(desk, ["a", "b", "c", "d"])
            await soon(batch.ended())

    run(scene())


def test_the_tools_own_keys_count_too() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            batch = desk.scheduler.schedule(
                [hold("a", reads="file:x"), request("edit", {"path": "x"}, "b"), request("edit", {"path": "y"}, "c")]
            )
            await until(lambda: batch.calls[2].status is CallStatus.SUCCESS)
            assert desk.ran == ["a", "y"]
            desk.shop.gate("a").set()
            await soon(batch.ended())
            assert desk.ran == ["a", "y", "x"]

    run(scene())


@pytest.mark.parametrize("end", ["cancel", "cancel in line", "fail"])
def test_a_call_that_ends_in_any_way_gives_its_keys_back(end: str) -> None:
    async def scene() -> None:
        async with Desk() as desk:
            if end == "fail":
                await desk.do(request("fail", {}, "a", writes="k"))
            else:
                desk.scheduler.schedule([hold("a", writes="k"), hold("b", writes="k"), hold("c", writes="k")])
                await desk.shop.began("a").wait()
                if end == "cancel in line":
                    desk.scheduler.cancel("b")
                desk.scheduler.cancel("a")
                await one_by_one(desk, ["c" if end == "cancel in line" else "b"])
                desk.shop.gate("c").set()
            await desk.over()
            assert not desk.scheduler._calls._locks._keys

    run(scene())


def test_what_waits_for_a_key_takes_no_slot() -> None:
    async def scene() -> None:
        async with Desk(concurrent=2) as desk:
            writers = [hold(name, writes="k") for name in "abc"]
            desk.scheduler.schedule([*writers, hold("d", reads="other")])
            await soon(desk.shop.began("d").wait())
            assert desk.shop.inside == {"a", "d"}
            desk.scheduler.cancel_all()
            await desk.over()

    run(scene())


# --- identical calls -------------------------------------------------------------------------------------------


def test_identical_calls_of_one_batch_run_once_and_all_get_the_result(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule(
                [
                    request("work", {"on": "x", "times": 2}, "a"),
                    request("work", {"times": 2, "on": "x"}, "b"),
                    request("work", {"on": "x", "times": 3}, "c"),
                ]
            )
            calls = await soon(batch.ended())
            texts = [call.result.text for call in calls if isinstance(call, SuccessfulToolCall)]
            assert texts == ['{"on": "x", "times": 2}', '{"on": "x", "times": 2}', '{"on": "x", "times": 3}']
            assert [call.request.call_id for call in calls] == ["a", "b", "c"]
            assert desk.ran == ["x", "x"]

    run(scene())
    assert way(store, "b") == ["validating", "scheduled", "executing", "success"]


def test_identical_calls_share_an_error_and_a_question(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            calls = await desk.do(request("fail", {}, "a"), request("fail", {}, "b"))
            assert [call.status for call in calls] == [CallStatus.ERROR] * 2
            assert desk.ran == ["no luck"]
            asked = desk.scheduler.schedule([request("work", {}, "c"), request("work", {}, "d")])
            await soon(asked.settled())
            await desk.say("c")
            assert {call.status for call in await soon(asked.ended())} == {CallStatus.SUCCESS}
            assert desk.ran == ["no luck", "it"]

    run(scene())


def test_the_same_call_of_another_batch_runs_again() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            await desk.do(request("work", {}, "a"))
            await desk.do(request("work", {}, "b"))
            assert desk.ran == ["it", "it"]

    run(scene())


def test_calls_that_depend_on_different_ones_are_not_identical() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            await desk.do(
                request("look", {}, "before"),
                request("edit", {"path": "x"}, "edit", after=("before",)),
                request("look", {}, "after", after=("edit",)),
            )
            assert desk.ran == ["it", "x", "it"]

    run(scene())


def test_a_twin_that_is_cancelled_does_not_end_the_one_that_runs() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            batch = desk.scheduler.schedule([request("hold", {"name": "x"}, id) for id in "ab"])
            await desk.shop.began("x").wait()
            desk.scheduler.cancel("b")
            desk.shop.gate("x").set()
            assert [call.status for call in await soon(batch.ended())] == [CallStatus.SUCCESS, CallStatus.CANCELLED]

    run(scene())


def test_cancelling_one_of_two_identical_calls_leaves_the_other() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            batch = desk.scheduler.schedule([request("hold", {"name": "x"}, id) for id in "ab"])
            await desk.shop.began("x").wait()
            desk.scheduler.cancel("a")
            desk.shop.gate("x").set()
            assert [call.status for call in await soon(batch.ended())] == [CallStatus.CANCELLED, CallStatus.SUCCESS]

    run(scene())


# --- and a person ----------------------------------------------------------------------------------------------


def test_safe_calls_do_not_wait_for_another_calls_approval(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, concurrent=1) as desk:
            calls = await desk.waiting(
                request("look", {"at": "b"}, "b"),
                request("edit", {"path": "x"}, "a"),
                request("look", {"at": "c"}, "c", after=("a",), reads="y"),
                request("look", {"at": "d"}, "d", after=("b",), reads="z"),
                request("look", {"at": "e"}, "e"),
            )
            statuses = ["success", "awaiting_approval", "scheduled", "success", "scheduled"]
            assert [call.status.value for call in calls] == statuses
            assert desk.ran == ["b", "d"]
            await desk.say("a")
            await desk.over()
            assert desk.ran == ["b", "d", "x", "c", "e"]

    run(scene())


def test_a_read_does_not_wait_for_the_approval_of_another_read(store: Store) -> None:
    async def scene() -> None:
        rules = [Rule(Verdict.ASK, "hold")]
        async with Desk(store, rules=rules) as desk:
            calls = await desk.waiting(hold("a"), request("look", {}, "b"))
            assert [call.status.value for call in calls] == ["awaiting_approval", "success"]

    run(scene())


def test_a_call_that_waits_for_a_person_holds_no_key() -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            await desk.waiting(request("edit", {"path": "x"}, "a"))
            (call,) = await desk.do(request("look", {}, "b", writes="file:x"))
            assert call.status is CallStatus.SUCCESS

    run(scene())


def test_a_yes_before_the_dependency_has_ended_does_not_run_the_call_too_early() -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            batch = desk.scheduler.schedule([hold("a"), request("work", {}, "b", after=("a",))])
            await desk.shop.began("a").wait()
            await desk.say("b")
            assert desk.ran == ["a"]
            desk.shop.gate("a").set()
            await soon(batch.ended())
            assert desk.ran == ["a", "it"]

    run(scene())


@pytest.mark.parametrize("why", ["\x1b[31mred", "x" * 25_000, "nul \x00"])
def test_whatever_a_tool_says_when_it_fails_is_on_record_and_work_goes_on(store: Store, why: str) -> None:
    @tool
    async def odd() -> str:
        raise ToolFailure(why)

    async def scene() -> None:
        async with Desk(store, tools=[odd]) as desk:
            await desk.do(request("odd", {}, "a"), request("look", {}, "b", after=("a",)))
            (call,) = await desk.do(request("look", {}, "c"))
            assert call.status is CallStatus.SUCCESS

    run(scene())
    assert stored(store, "b").status == "cancelled"


def test_a_priority_that_no_database_holds_is_refused(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            (call,) = await soon(desk.scheduler.schedule(request("look", priority=2**70)).ended(), 2)
            assert call.status is CallStatus.ERROR

    run(scene())
