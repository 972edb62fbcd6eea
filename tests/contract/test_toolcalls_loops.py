"""An agent that makes the same call over and over is asked about (S12)."""

from __future__ import annotations

import pytest
from tests.contract.toolcalls import Desk, request, run

from punchlist.conversations.model import TurnScope
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import ToolCallRequest, WaitingToolCall
from punchlist.toolcalls.policy import Mode, Rule, Verdict

pytestmark = pytest.mark.spec("S12")


async def statuses(desk: Desk, *requests: ToolCallRequest) -> list[str]:
    """What came of calls that are made one after the other."""
    return [(await desk.waiting(one))[0].status.value for one in requests]


def same(*ids: str, tool: str = "work") -> list[ToolCallRequest]:
    return [request(tool, {}, id) for id in ids]


@pytest.mark.parametrize("mode", [Mode.YOLO, Mode.AUTO_EDIT])
@pytest.mark.parametrize("tool", ["look", "work"])
def test_the_fifth_identical_call_is_asked_about_in_every_mode(mode: Mode, tool: str) -> None:
    async def scene() -> None:
        rules = [Rule(Verdict.ALLOW, tool)] if mode is Mode.AUTO_EDIT else []
        async with Desk(None, mode, rules=rules) as desk:
            assert await statuses(desk, *same(*"abcd", tool=tool)) == ["success"] * 4
            (fifth,) = await desk.waiting(request(tool, {}, "e"))
            assert isinstance(fifth, WaitingToolCall)
            assert "5 times" in fifth.question.why
            assert len(desk.ran) == 4

    run(scene())


def test_an_edit_in_between_starts_the_count_anew() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            assert await statuses(desk, *same(*"abcd")) == ["success"] * 4
            assert await statuses(desk, request("edit", {"path": "x"}, "edit")) == ["success"]
            assert await statuses(desk, *same(*"efghi")) == ["success"] * 4 + ["awaiting_approval"]

    run(scene())


def test_reading_in_between_does_not() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            assert await statuses(desk, *same(*"abcd")) == ["success"] * 4
            assert await statuses(desk, *same("r", tool="look")) == ["success"]
            assert await statuses(desk, *same("e")) == ["awaiting_approval"]

    run(scene())


def test_other_arguments_are_another_call_and_their_order_is_not() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            different = [request("look", {"at": str(n)}, f"d{n}") for n in range(8)]
            assert set(await statuses(desk, *different)) == {"success"}
            turned = [{"on": "x", "times": 1}, {"times": 1, "on": "x"}] * 3
            asked = [request("work", arguments, f"t{n}") for n, arguments in enumerate(turned[:5])]
            assert (await statuses(desk, *asked))[-1] == "awaiting_approval"

    run(scene())


def test_a_yes_forgives() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            await statuses(desk, *same(*"abcde"))
            await desk.say("e")
            assert await statuses(desk, *same(*"fghij")) == ["success"] * 4 + ["awaiting_approval"]

    run(scene())


def test_a_no_does_not_forgive() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            await statuses(desk, *same(*"abcde"))
            await desk.say("e", ApprovalOutcome.CANCEL)
            assert await statuses(desk, *same("f")) == ["awaiting_approval"]

    run(scene())


def test_always_does_not_hide_a_loop(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work", {}, "a"))
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_TOOL)
            assert await statuses(desk, *same(*"bcdef")) == ["success"] * 4 + ["awaiting_approval"]

    run(scene())


def test_a_loop_is_noticed_across_a_restart(store: Store, turn: TurnScope) -> None:
    async def scene() -> None:
        async with Desk(store, turn_id=turn.turn_id) as desk:
            assert await statuses(desk, *same(*"abcd")) == ["success"] * 4
        async with Desk(store, turn_id=turn.turn_id) as again:
            assert await statuses(again, *same("e")) == ["awaiting_approval"]

    run(scene())


def test_history_is_in_the_order_of_what_happened(store: Store, turn: TurnScope) -> None:
    async def scene() -> None:
        async with Desk(store, turn_id=turn.turn_id) as desk:
            await desk.do(request("look", {}, "z"))
            await desk.do(request("edit", {"path": "x"}, "a"))
            assert desk.ledger
            assert [key.partition(" ")[0] for key, _ in desk.ledger.history()] == ["look", "edit"]

    run(scene())


def test_a_denied_call_stays_denied_however_often() -> None:
    async def scene() -> None:
        async with Desk(None, rules=[Rule(Verdict.DENY, "work")]) as desk:
            assert set(await statuses(desk, *same(*"abcdefg"))) == {CallStatus.CANCELLED.value}

    run(scene())


def turns(count: int, *calls: tuple[str, dict[str, str]], start: int = 0) -> list[ToolCallRequest]:
    """These calls in turn, `count` in all."""
    wanted = [calls[number % len(calls)] for number in range(count)]
    return [request(name, arguments, f"t{start + number}") for number, (name, arguments) in enumerate(wanted)]


TEST = ("work", {"on": "tests"})
EDITS = [("edit", {"path": path}) for path in "abcd"]


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_cycle_of_changes_is_asked_about_when_it_begins_for_the_fifth_time(length: int) -> None:
    async def scene() -> None:
        async with Desk() as desk:
            cycle = [TEST, *EDITS[: length - 1]]
            assert set(await statuses(desk, *turns(4 * length, *cycle))) == {"success"}
            (fifth,) = await desk.waiting(request(*TEST, "fifth"))
            assert isinstance(fifth, WaitingToolCall)
            assert f"the same {length} calls are made in turn for the 5th time" in fifth.question.why
            # A no does not forgive, and a yes does.
            await desk.say("fifth", ApprovalOutcome.CANCEL)
            following = request(*cycle[1], "following")
            assert await statuses(desk, following) == ["awaiting_approval"]
            await desk.say("following")
            assert set(await statuses(desk, *turns(4 * length, *cycle, start=100))) == {"success"}

    run(scene())


def test_reading_in_between_does_not_hide_a_cycle_and_another_change_does() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            mixed = [TEST, EDITS[0], ("look", {"at": "x"})]
            assert set(await statuses(desk, *turns(12, *mixed))) == {"success"}
            assert await statuses(desk, request(*TEST, "fifth")) == ["awaiting_approval"]
        async with Desk() as desk:
            assert set(await statuses(desk, *turns(8, TEST, EDITS[0]))) == {"success"}
            assert await statuses(desk, request("edit", {"path": "other"}, "other")) == ["success"]
            assert set(await statuses(desk, *turns(8, TEST, EDITS[0], start=50))) == {"success"}

    run(scene())


def test_work_that_differs_each_time_is_no_cycle() -> None:
    async def scene() -> None:
        async with Desk() as desk:
            for number in range(12):
                edit = request("edit", {"path": f"f{number}"}, f"e{number}")
                assert await statuses(desk, edit, request(*TEST, f"t{number}")) == ["success"] * 2

    run(scene())


def test_a_cycle_is_noticed_across_a_restart(store: Store, turn: TurnScope) -> None:
    async def scene() -> None:
        async with Desk(store, turn_id=turn.turn_id) as desk:
            assert set(await statuses(desk, *turns(8, TEST, EDITS[0]))) == {"success"}
        async with Desk(store, turn_id=turn.turn_id) as again:
            assert await statuses(again, request(*TEST, "fifth")) == ["awaiting_approval"]

    run(scene())
