"""When the database is away, and when a process ends without a word (S1, S5, TRUST)."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from datetime import timedelta

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import nothing_changes
from tests.contract.toolcalls import (
    AGENT,
    Desk,
    OtherProcess,
    approval,
    request,
    run,
    soon,
    steps,
    stored,
    until,
    way,
)

from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import StoreUnavailable
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalExpiry, OnExpiry
from punchlist.toolcalls.call_endings import INTERRUPTED
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import ErroredToolCall, WaitingToolCall
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.service import NOT_STARTED, ToolCallService
from punchlist.tools.function_tool import tool

pytestmark = pytest.mark.spec("S1")


AWAY = StoreUnavailable("The database is away.")


class Outage:
    """A database that is away: nothing can be recorded until it is `over`."""

    def __init__(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch, what: str = "record", error: Exception = AWAY
    ) -> None:
        self.is_over = False
        assert desk.ledger
        assert desk.recorder
        self._recorder = desk.recorder
        real = getattr(desk.ledger, what)

        def fail(*arguments: object) -> object:
            if self.is_over:
                return real(*arguments)
            raise error

        monkeypatch.setattr(desk.ledger, what, fail)

    async def over(self) -> None:
        self.is_over = True
        # A commit may have begun before.
        with suppress(Exception):
            await soon(self._recorder.flushed())
        await soon(self._recorder.flushed())


def test_what_cannot_be_recorded_does_not_run_and_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            outage = Outage(desk, monkeypatch)
            batch = desk.scheduler.schedule(request("look"))
            with pytest.raises(StoreUnavailable):
                await soon(batch.ended())
            (call,) = batch.calls
            assert isinstance(call, ErroredToolCall)
            assert call.error == (
                "store_unavailable",
                "The call was not run because it could not be stored. The database is away.",
            )
            assert desk.ran == []
            await outage.over()
            await soon(batch.ended())
            (after,) = await desk.do(request("look", {}, "b"))
            assert (after.status, desk.ran) == (CallStatus.SUCCESS, ["it"])

    run(scene())
    assert way(store) == ["validating", "scheduled", "executing", "error"]


def test_an_error_that_nobody_thought_of_is_an_outage_like_any_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the driver's own, for a table that is not there."""

    async def scene() -> None:
        async with Desk(store) as desk:
            outage = Outage(desk, monkeypatch, error=LookupError("no such table"))
            batch = desk.scheduler.schedule(request("look"))
            await until(lambda: batch.calls[0].status is CallStatus.ERROR, 2)
            await outage.over()
            await soon(batch.ended())

    run(scene())
    assert stored(store).status == "error"


def test_what_ended_while_the_database_was_away_is_recorded_when_it_is_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            batch = desk.scheduler.schedule(request("hold", {"name": "x"}))
            await soon(desk.shop.began("x").wait())
            outage = Outage(desk, monkeypatch)
            desk.shop.gate("x").set()
            with pytest.raises(StoreUnavailable):
                await soon(batch.ended())
            assert stored(store).status == "executing"
            await outage.over()
            (call,) = await soon(batch.ended())
            assert call.status is CallStatus.SUCCESS

    run(scene())
    assert way(store) == ["validating", "scheduled", "executing", "success"]


def test_a_yes_that_cannot_be_recorded_runs_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            outage = Outage(desk, monkeypatch)
            with pytest.raises(StoreUnavailable):
                await desk.say("a")
            await until(lambda: not desk.scheduler.calls)
            assert desk.ran == []
            await outage.over()

    run(scene())
    assert stored(store).status == "error"
    assert approval(store).status == "approved"


def test_a_question_that_could_not_be_recorded_before_it_was_answered_harms_nobody_else(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            outage = Outage(desk, monkeypatch)
            batch = desk.scheduler.schedule(request("work"))
            with pytest.raises(StoreUnavailable):
                await soon(batch.settled())
            with pytest.raises(StoreUnavailable):
                await desk.say("a")
            await outage.over()
            (call,) = await desk.do(request("look", {}, "b"))
            assert call.status is CallStatus.SUCCESS

    run(scene())


def test_an_escalation_that_fails_does_not_record_anything_twice(
    store: Store, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        expiry = ApprovalExpiry(OnExpiry.ESCALATE, timedelta(minutes=5))
        async with Desk(store, Mode.DEFAULT, expiry=expiry) as desk:
            (asked,) = await desk.waiting(request("work"))
            outage = Outage(desk, monkeypatch, "escalate")
            assert desk.recorder
            assert isinstance(asked, WaitingToolCall)
            desk.recorder.escalate(asked)
            batch = desk.scheduler.schedule(request("look", {}, "b"))
            await until(lambda: batch.calls[0].status in (CallStatus.ERROR, CallStatus.SUCCESS))
            await outage.over()
            await desk.recorder.flushed()

    run(scene())
    assert way(store, "b")[:3] == ["validating", "scheduled", "executing"]
    assert len(way(store, "b")) == 4


def test_after_kill_9_what_ran_is_interrupted_what_was_in_line_is_cancelled_and_questions_stay(
    store: Store, database: str
) -> None:
    with OtherProcess("hold", database) as other:
        assert [stored(store, id).status for id in ("running", "next", "asked")] == [
            "executing",
            "scheduled",
            "awaiting_approval",
        ]
    assert other.process.returncode == -9
    desk = Desk(store)
    assert desk.ledger
    ended = {call.id: call for call in desk.ledger.recover()}
    assert ended.keys() == {"running", "next"}
    assert (ended["running"].status, ended["running"].error_code) == ("error", "interrupted")
    assert (ended["running"].explanation, ended["next"].explanation) == (INTERRUPTED, NOT_STARTED)
    assert ended["next"].status == "cancelled"
    assert stored(store, "running") == ended["running"]
    assert stored(store, "asked").status == "awaiting_approval"
    assert [steps(store, id)[-1].action for id in ("running", "next")] == ["fail", "cancel"]
    with nothing_changes(store):
        assert desk.ledger.recover() == []


def test_recovery_leaves_other_sessions_and_living_processes_alone(store: Store, database: str) -> None:
    with OtherProcess("hold", database):
        pass
    elsewhere = Desk(store, scope=Scope("another", AGENT.actor))
    assert elsewhere.ledger
    with nothing_changes(store):
        assert elsewhere.ledger.recover() == []


def test_of_two_who_recover_at_once_one_does_it(store: Store, database: str) -> None:
    with OtherProcess("hold", database):
        pass

    async def scene() -> None:
        ledgers = [Desk(store).ledger for _ in range(4)]
        found = await asyncio.gather(*[asyncio.to_thread(ledger.recover) for ledger in ledgers if ledger])
        assert sorted(call.id for some in found for call in some) == ["next", "running"]

    run(scene())
    assert way(store, "running").count("error") == 1


def test_what_this_process_still_runs_is_not_recovered(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            desk.scheduler.schedule(request("hold", {"name": "x"}))
            await soon(desk.shop.began("x").wait())
            other = Desk(store)
            assert other.ledger
            assert other.ledger.recover() == []

    run(scene())


@pytest.mark.spec("M9")
def test_what_this_process_ran_in_a_turn_that_it_takes_up_again_is_interrupted(store: Store) -> None:
    """The database may be gone when a call ends, so that nobody has heard of that."""
    turn = Conversations(store).open_turn(AGENT).id

    async def scene() -> None:
        async with Desk(store, turn_id=turn) as desk:
            desk.scheduler.schedule(request("hold", {"name": "x"}, "before"))
            await soon(desk.shop.began("x").wait())
            assert ToolCallService(store, AGENT, "/w", abandoned=True).recover() == [], "it is of a turn"
            (ended,) = ToolCallService(store, AGENT, "/w", turn, abandoned=True).recover()
            assert (ended.id, ended.status, ended.error_code) == ("before", "error", "interrupted")

    run(scene())
    assert stored(store, "before").explanation == INTERRUPTED


# --- nothing is left behind ----------------------------------------------------------------------------------------


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.spec("S7")
def test_no_task_and_no_file_is_left_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist.toolcalls.scheduler.GRACE", 0.02)

    @tool
    def threaded() -> str:
        raise KeyError("x")

    async def once(number: int) -> None:
        desk = Desk(store, Mode.DEFAULT, tools=[threaded])

        def id(name: str) -> str:
            return f"{name}{number}"

        batch = desk.scheduler.schedule(
            [
                request("crash", {}, id("crash")),
                request("fail", {}, id("fail")),
                request("hold", {"name": "x"}, id("hold")),
                request("ignore", {"name": "deaf"}, id("deaf")),
                request("hold", {"name": "late"}, id("late"), timeout=0.02),
                request("work", {"on": "yes"}, id("yes")),
                request("work", {"on": "never"}, id("never")),
                request("threaded", {}, id("thread")),
                request("speak_elsewhere", {"lines": ["x"]}, id("speak")),
            ]
        )
        await soon(desk.shop.began("deaf").wait())
        await desk.say(id("yes"))
        await desk.say(id("thread"))
        batch.cancel()
        await soon(batch.ended())
        desk.shop.gate("deaf").set()
        await desk.close()
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, 5)

    async def scene() -> None:
        await once(0)
        # Connections that wait to be used again are no leak, and how many there are is chance.
        store.connections.close()
        before = open_files()
        for number in range(1, 6):
            await once(number)
        store.connections.close()
        assert open_files() <= before

    asyncio.run(scene())
