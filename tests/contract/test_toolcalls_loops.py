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
