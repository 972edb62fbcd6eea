"""Approvals are rows: seen and answered from anywhere, also after a restart, and never given by the clock (S5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from threading import Barrier, Event

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import everything, nothing_changes, trail
from tests.contract.toolcalls import (
    ANN,
    BOB,
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
    yes,
)

from punchlist.conversations.model import ChatEntry, Message
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, InvalidInput, NotAllowed, NotFound, PunchlistError, StoreBusy
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.secrets import Redactor
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.surfaces.web.pages.chat import shown_messages
from punchlist.toolcalls.approval_store import Approvals, approval_stream
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalExpiry, ApprovalOutcome, OnExpiry
from punchlist.toolcalls.batch import CallBatch
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import CancelledToolCall
from punchlist.toolcalls.policy import Mode

pytestmark = pytest.mark.spec("S5")


@pytest.fixture
def elsewhere(store: Store, database: str, clock: StoppedClock) -> Iterator[Approvals]:
    """Somebody with a connection of their own."""
    opened = open_store(database, clock=clock)
    yield Approvals(opened)
    opened.close()


async def asked(desk: Desk, *ids: str) -> CallBatch:
    batch = desk.scheduler.schedule([request("work", {"on": id}, id) for id in ids or "a"])
    await soon(batch.settled())
    return batch


def test_what_waits_is_listed_everywhere_oldest_first(store: Store, elsewhere: Approvals, clock: StoppedClock) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await asked(desk, "z")
            clock.advance(seconds=1)
            await asked(desk, "a")
            assert [one.call_id for one in elsewhere.waiting()] == ["z", "a"]
            assert [one.call_id for one in elsewhere.waiting("s")] == ["z", "a"]
            assert elsewhere.waiting("another") == []

    run(scene())


def test_an_answer_from_elsewhere_lets_the_call_run(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            elsewhere.answer("a", yes(by=BOB))
            (call,) = await soon(batch.ended())
            assert (call.status, desk.ran) == (CallStatus.SUCCESS, ["a"])

    run(scene())
    assert approval(store).answered_by == "person:bob"
    assert [event.actor for event in steps(store) if event.action == "approve"] == ["person:bob"]


def test_an_answer_is_heard_that_was_given_while_answers_to_others_were_read(
    store: Store, elsewhere: Approvals
) -> None:
    read: list[list[str]] = []
    answered = Event()

    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            assert desk.recorder
            reads = desk.recorder._read_answers

            def late(ids: Sequence[str]) -> Sequence[tuple[str, ApprovalAnswer]]:
                read.append(list(ids))
                answered.wait(20)
                return reads(ids)

            desk.recorder._read_answers = late  # type: ignore[method-assign, assignment]
            await asked(desk, "a")
            await until(lambda: bool(read))
            batch = await asked(desk, "b")
            elsewhere.answer("b", yes(by=BOB))
            answered.set()
            (call,) = await soon(batch.ended())
            assert (call.status, desk.ran) == (CallStatus.SUCCESS, ["b"])

    run(scene())
    assert read[0] == ["a"]


def test_a_no_from_elsewhere_ends_it_with_its_reason(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            elsewhere.answer("a", yes(ApprovalOutcome.CANCEL, BOB, reason="too late in the day"))
            (call,) = await soon(batch.ended())
            assert isinstance(call, CancelledToolCall)
            assert (call.reason, desk.ran) == ("bob denied this call: too late in the day", [])

    run(scene())


def test_modified_arguments_from_elsewhere_are_those_that_run(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            elsewhere.answer("a", yes(ApprovalOutcome.MODIFY, arguments={"on": "other"}))
            await soon(batch.ended())
            assert desk.ran == ["other"]

    run(scene())
    found = elsewhere.find("a")
    name = str(found.answered_by).partition(":")[2]
    assert elsewhere.editor("a") == name
    assert elsewhere.edited_calls(found.conversation_id) == {"a": (name, {"on": "other"})}
    assert elsewhere.edited_calls("another") == {}


def test_pages_show_the_call_that_ran_and_who_edited_it() -> None:
    content = json.dumps({"text": "", "calls": [{"id": "a", "tool": "run_command", "arguments": {"command": "rm x"}}]})
    message = Message("m1", "s", None, 1, "assistant", "reply", content, "2026-01-01T00:00:00Z")
    [shown] = shown_messages([ChatEntry(message, None)], {"a": ("ada", {"command": "ls x"})})
    [call] = shown.calls
    assert (call.about, call.edited_by) == ("ls x", "ada")
    assert "rm x" not in call.arguments


def test_arguments_from_elsewhere_that_do_not_fit_harm_nobody_else(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk, "a", "b")
            elsewhere.answer("a", yes(ApprovalOutcome.MODIFY, arguments={"on": 5}))
            elsewhere.answer("b", yes())
            await until(lambda: batch.calls[1].status is CallStatus.SUCCESS, 2)
            (left, _) = batch.calls
            assert left.status is not CallStatus.AWAITING_APPROVAL

    run(scene())


def test_an_answer_from_another_process_lets_the_call_run(store: Store, database: str) -> None:
    async def scene() -> None:
        with OtherProcess("answer", database, "a") as other:
            async with Desk(store, Mode.DEFAULT) as desk:
                batch = await asked(desk)
                assert await asyncio.to_thread(other.go) == "approved"
                (call,) = await soon(batch.ended())
                assert call.status is CallStatus.SUCCESS

    run(scene())


def test_a_second_answer_is_a_conflict_that_names_the_first(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            elsewhere.answer("a", yes(by=BOB))
            await soon(batch.ended())

    run(scene())
    with nothing_changes(store), pytest.raises(Conflict, match="person:bob has already answered"):
        elsewhere.answer("a", yes(ApprovalOutcome.CANCEL, ANN))


def test_of_many_answers_at_once_one_wins(store: Store, database: str) -> None:
    people = [Actor(Role.PERSON, f"p{number}") for number in range(6)]

    def answer(person: Actor, start: Barrier) -> str:
        mine = open_store(database)
        try:
            start.wait(20)
            outcome = ApprovalOutcome.PROCEED_ONCE if person.name < "p3" else ApprovalOutcome.CANCEL
            return Approvals(mine).answer("a", yes(outcome, person)).answered_by or ""
        except Conflict:
            return "conflict"
        finally:
            mine.close()

    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            start = Barrier(len(people))
            with ThreadPoolExecutor(len(people)) as pool:
                loop = asyncio.get_running_loop()
                said = await asyncio.gather(*[loop.run_in_executor(pool, answer, one, start) for one in people])
            (call,) = await soon(batch.ended())
            assert said.count("conflict") == len(people) - 1
            (winner,) = [one for one in said if one != "conflict"]
            assert (call.status is CallStatus.SUCCESS) == (winner < "person:p3")
            assert approval(store).answered_by == winner

    run(scene())


def test_an_answer_here_that_comes_second_is_a_conflict_and_the_first_one_holds(
    store: Store, elsewhere: Approvals
) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            elsewhere.answer("a", yes(ApprovalOutcome.CANCEL, BOB))
            with pytest.raises(Conflict):
                await desk.say("a", by=ANN)
            await soon(batch.ended())
            assert desk.ran == []
            assert stored(store).status == "cancelled"

    run(scene())


def test_an_answer_here_that_comes_second_never_makes_it_run(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            elsewhere.answer("a", yes(ApprovalOutcome.CANCEL, BOB))
            with suppress(PunchlistError):
                await desk.say("a", by=ANN)
            (call,) = await soon(batch.ended())
            assert call.status is not CallStatus.SUCCESS
            assert desk.ran == []

    run(scene())
    assert approval(store).answered_by == "person:bob"


def test_no_agent_answers_in_the_persons_place(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await asked(desk)
            with nothing_changes(store):
                for role in (Role.WORKER, Role.SUPERVISOR, Role.SYSTEM):
                    for outcome in (ApprovalOutcome.PROCEED_ONCE, ApprovalOutcome.MODIFY, ApprovalOutcome.CANCEL):
                        with pytest.raises(NotAllowed):
                            elsewhere.answer("a", ApprovalAnswer(outcome, Actor(role, "x"), {"on": "evil"}))
            assert desk.ran == []

    run(scene())


def test_an_answer_that_makes_no_sense_is_refused_elsewhere_too(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await asked(desk)
            with nothing_changes(store):
                for wrong in (
                    yes(ApprovalOutcome.PROCEED_ALWAYS_SERVER),
                    yes(ApprovalOutcome.MODIFY),
                    yes(ApprovalOutcome.CANCEL, reason="\x1b"),
                ):
                    with pytest.raises(InvalidInput):
                        elsewhere.answer("a", wrong)
                with pytest.raises(NotFound):
                    elsewhere.answer("unknown", yes())

    run(scene())


def test_an_approval_is_found_by_the_end_of_its_id(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await asked(desk, "one-x", "two-x", "two-y")
            assert elsewhere.find("two-y").call_id == "two-y"
            assert elsewhere.find("y").call_id == "two-y"
            assert elsewhere.call("two-y").tool == "work"
            with pytest.raises(InvalidInput, match="the end of 2 ids"):
                elsewhere.find("x")
            with pytest.raises(NotFound):
                elsewhere.find("z")

    run(scene())


def test_an_empty_id_finds_nothing(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await asked(desk)
            with pytest.raises((NotFound, InvalidInput)):
                elsewhere.find("")

    run(scene())


# --- after the end of whoever asked --------------------------------------------------------------------------


def test_what_waits_stays_when_the_scheduler_is_closed(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await asked(desk)

    run(scene())
    assert stored(store).status == "awaiting_approval"
    assert [one.call_id for one in elsewhere.waiting()] == ["a"]


@pytest.mark.parametrize("answered_before", [True, False])
def test_after_kill_9_another_process_takes_over_and_it_runs_exactly_once(
    store: Store, database: str, answered_before: bool
) -> None:
    approvals = Approvals(store)
    with OtherProcess("hold", database) as other:
        pass
    assert other.process.returncode == -9

    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            assert desk.ledger
            desk.ledger.recover()
            if answered_before:
                approvals.answer("asked", yes(by=BOB))
            taken = desk.ledger.take_over("asked")
            assert taken is not None
            batch = desk.scheduler.resume(taken.request, approval(store, "asked").as_question)
            if not answered_before:
                approvals.answer("asked", yes(by=BOB))
            (call,) = await soon(batch.ended())
            assert (call.status, desk.ran) == (CallStatus.SUCCESS, ["z"])
            assert desk.ledger.take_over("asked") is None

    run(scene())
    assert way(store, "asked")[3:] == ["awaiting_approval", "scheduled", "executing", "success"]
    assert [event.action for event in steps(store, "asked")].count("execute") == 1


def test_a_call_that_is_taken_over_has_the_keys_and_the_limit_that_it_declared(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = request("work", {}, "a", reads="r", writes="w", timeout=5)

    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(declared)

    run(scene())
    monkeypatch.setattr("punchlist.toolcalls.service.is_running", lambda _: False)
    desk = Desk(store, Mode.DEFAULT)
    assert desk.ledger
    taken = desk.ledger.take_over("a")
    assert taken is not None
    assert taken.request == declared


def test_what_a_living_process_has_in_hand_is_not_taken(store: Store, database: str) -> None:
    with OtherProcess("hold", database):
        desk = Desk(store, Mode.DEFAULT)
        assert desk.ledger
        with nothing_changes(store):
            assert desk.ledger.take_over("asked") is None
            assert desk.ledger.recover() == []


def test_two_who_take_over_at_once_do_not_both_run_it(
    store: Store, database: str, elsewhere: Approvals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on two machines, which cannot see each other's processes."""
    with OtherProcess("hold", database):
        pass
    monkeypatch.setattr("punchlist.toolcalls.service.is_running", lambda _: None)

    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as one, Desk(store, Mode.DEFAULT) as two:
            batches = []
            for desk, owner in ((one, "host-1:1:1"), (two, "host-2:2:2")):
                assert desk.ledger
                desk.ledger._owner = owner
                taken = desk.ledger.take_over("asked")
                assert taken is not None
                batches.append(desk.scheduler.resume(taken.request, approval(store, "asked").as_question))
            elsewhere.answer("asked", yes())
            await soon(asyncio.gather(*[batch.ended() for batch in batches]))
            assert one.ran + two.ran == ["z"]

    run(scene())
    assert [event.action for event in steps(store, "asked")].count("execute") == 1


def test_an_answer_is_heard_though_the_database_was_busy_at_the_first_look(
    store: Store, elsewhere: Approvals, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            assert desk.ledger
            look, looks = desk.ledger.answers, asyncio.Event()

            def answers(call_ids: object) -> list[tuple[str, ApprovalAnswer]]:
                if not looks.is_set():
                    looks.set()
                    raise StoreBusy("busy")
                return look(["a"])

            assert desk.recorder
            while await desk.recorder.answers(["a"]) or desk.recorder._unread:
                pass
            monkeypatch.setattr(desk.ledger, "answers", answers)
            elsewhere.answer("a", yes())
            await soon(batch.ended(), 2)

    run(scene())


def test_a_question_asked_just_when_listening_ends_is_listened_for(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await asked(desk)
            listening = desk.scheduler._approval_watcher._tasks["watch"]
            await desk.say("a")
            while not listening.done():
                await asyncio.sleep(0)
            batch = await asked(desk, "b")
            elsewhere.answer("b", yes())
            await soon(batch.ended(), 2)

    run(scene())


# --- the clock ------------------------------------------------------------------------------------------------


def five_minutes(then: OnExpiry) -> ApprovalExpiry:
    return ApprovalExpiry(then, timedelta(minutes=5))


def no_person_decided(store: Store) -> None:
    found = approval(store)
    assert (found.answered_by, found.answered_at, found.outcome, found.answer) == (None, None, None, None)
    assert {event.actor for event in trail(store, approval_stream("a"))} == {"system:punchlist"}
    assert {event.actor for event in steps(store, "a")} <= {"system:punchlist", "supervisor:agent"}


def test_a_question_may_wait_for_ever(store: Store, clock: StoppedClock, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, expiry=five_minutes(OnExpiry.WAIT)) as desk:
            batch = await asked(desk)
            clock.advance(days=365)
            with nothing_changes(store):
                assert [one.call_id for one in elsewhere.waiting()] == ["a"]
            elsewhere.answer("a", yes())
            (call,) = await soon(batch.ended())
            assert call.status is CallStatus.SUCCESS

    run(scene())


def test_a_question_may_end_the_call_when_time_is_up_and_that_is_no_persons_decision(
    store: Store, clock: StoppedClock
) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, expiry=five_minutes(OnExpiry.DENY)) as desk:
            batch = await asked(desk)
            clock.advance(minutes=5)
            (call,) = await soon(batch.ended())
            assert isinstance(call, CancelledToolCall)
            assert "was not answered in time" in call.reason
            assert desk.ran == []

    run(scene())
    assert approval(store).status == "expired"
    assert stored(store).status == "cancelled"
    no_person_decided(store)


def test_time_is_up_also_when_nobody_has_the_call_in_hand(
    store: Store, database: str, clock: StoppedClock, elsewhere: Approvals
) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, expiry=five_minutes(OnExpiry.DENY)) as desk:
            await asked(desk)

    run(scene())
    clock.advance(minutes=5)
    assert elsewhere.waiting() == []
    assert approval(store).status == "expired"
    no_person_decided(store)
    with nothing_changes(store), pytest.raises(PunchlistError):
        elsewhere.answer("a", yes())


def test_a_yes_to_what_has_just_expired_elsewhere_harms_nobody_else(
    store: Store, clock: StoppedClock, elsewhere: Approvals
) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, expiry=five_minutes(OnExpiry.DENY)) as desk:
            await asked(desk)
            clock.advance(minutes=5)
            elsewhere.expire_overdue()
            with suppress(PunchlistError):
                await desk.say("a")
            (call,) = await desk.do(request("look", {}, "b"))
            assert call.status is CallStatus.SUCCESS
            assert desk.ran == ["it"]

    run(scene())


def test_a_question_may_be_escalated_once_and_then_still_be_answered(
    store: Store, clock: StoppedClock, elsewhere: Approvals
) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, expiry=five_minutes(OnExpiry.ESCALATE)) as desk:
            batch = await asked(desk)
            clock.advance(minutes=6)
            await until(lambda: approval(store).status == "escalated")
            elsewhere.expire_overdue()
            (message,) = Conversations(store).messages("s")
            assert "No answer since" in message.content
            no_person_decided(store)
            assert desk.ran == []
            elsewhere.answer("a", yes(by=BOB))
            (call,) = await soon(batch.ended())
            assert call.status is CallStatus.SUCCESS

    run(scene())
    assert approval(store).answered_by == "person:bob"


def test_a_cancelled_call_takes_its_question_back(store: Store, elsewhere: Approvals) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = await asked(desk)
            desk.scheduler.cancel("a")
            await soon(batch.ended())

    run(scene())
    assert approval(store).status == "withdrawn"
    assert elsewhere.waiting() == []
    assert approval(store).answered_by is None


# --- secrets ----------------------------------------------------------------------------------------------------


def test_a_secret_in_a_reason_is_not_written_down(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, redactor=Redactor(also=["hunter2-hunter2"])) as desk:
            await asked(desk)
            await desk.say("a", ApprovalOutcome.CANCEL, reason="the key is hunter2-hunter2")
            await desk.over()

    run(scene())
    assert "hunter2" not in str(everything(store))


def test_a_secret_in_modified_arguments_is_gone_when_the_call_has_ended(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, redactor=Redactor(also=["hunter2-hunter2"])) as desk:
            await asked(desk)
            await desk.say("a", ApprovalOutcome.MODIFY, arguments={"on": "hunter2-hunter2"})
            await desk.over()
            assert desk.ran == ["hunter2-hunter2"]

    run(scene())
    assert "hunter2" not in str(everything(store))


def test_a_secret_in_arguments_runs_as_it_is_and_is_gone_when_the_call_has_ended(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, redactor=Redactor(also=["hunter2-hunter2"])) as desk:
            await desk.waiting(request("work", {"on": "hunter2-hunter2"}))
            assert "hunter2" not in approval(store).question
            await desk.say("a")
            await desk.over()
            assert desk.ran == ["hunter2-hunter2"]

    run(scene())
    assert "hunter2" not in str(everything(store))
