"""The loop when things happen that it did not ask for: replies out of bounds, turns ended under it, odd resumes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.rehearsing import Rehearse, Rehearsing, calls, completes, every_call_has_one_result, plans, says
from tests.sessions import traces

from punchlist import tool
from punchlist.agent.continuation import OpenItem, Reason
from punchlist.agent.resume import resume_prompt, resume_session, wait_until_resumable
from punchlist.agent.transcript import to_stored
from punchlist.agent.turn_model import TurnResult
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations
from punchlist.conversations.turn_writer import TurnWriter
from punchlist.errors import InvalidInput
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import (
    CallReturn,
    FinishReason,
    ModelInfo,
    ModelRefused,
    ModelRequest,
    Reply,
    RequestedCall,
    TextListener,
    UserText,
)
from punchlist.plan.service import Plans
from punchlist.storage.store import Store
from punchlist.toolcalls.approval_store import Approvals
from punchlist.toolcalls.approvals import ApprovalAnswer
from punchlist.toolcalls.approvals import ApprovalOutcome as Given
from punchlist.toolcalls.policy import Mode

WRITE = ("write_file", {"path": "x", "content": "hello"})


def resume(scene: Rehearsing) -> TurnResult:
    return asyncio.run(asyncio.wait_for(resume_session(scene.runtime, lambda _: scene.agent, scene.signal), 60))


def approve(store: Store) -> None:
    approvals = Approvals(store)
    for one in approvals.waiting():
        approvals.answer(one.call_id, ApprovalAnswer(Given.PROCEED_ONCE, Actor(Role.PERSON, "ann")))


@pytest.mark.spec("C9", "T14")
@pytest.mark.parametrize("goal", ["half \ud800", "nul \0", "a" * (MAX_MESSAGE_LENGTH + 1)], ids=["half", "nul", "long"])
def test_a_goal_that_cannot_be_kept_leaves_the_turn_before_it_as_it_is(
    rehearse: Rehearse, agent: Scope, conversations: Conversations, goal: str
) -> None:
    waiting = rehearse(calls(WRITE)).in_mode(Mode.DEFAULT).run()
    with pytest.raises(InvalidInput, match="goal"):
        rehearse(says("Never.")).run(goal)
    turn = conversations.current_turn(agent.conversation_id)
    assert turn is not None
    assert turn.id == waiting.turn_id


@pytest.mark.spec("C13")
def test_a_reply_too_long_to_be_kept_ends_the_turn_and_runs_nothing(
    rehearse: Rehearse, agent: Scope, conversations: Conversations
) -> None:
    command = ("run_command", {"command": "touch ran"})
    scene = rehearse(calls(command, text="a" * (MAX_MESSAGE_LENGTH + 1)))
    outcome = scene.run()
    assert outcome.reason is Reason.ERROR
    assert conversations.current_turn(agent.conversation_id) is None
    (turn,) = conversations.turns(agent.conversation_id)
    assert str(turn.end_reason).startswith("error")


class Refusing:
    """A provider whose error has characters that no database keeps."""

    name, info = "refusing", ModelInfo()

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        del request, on_text
        raise ModelRefused("half \ud800, nul \0")


@pytest.mark.spec("C13")
def test_an_error_of_the_provider_is_kept_whatever_characters_it_has(
    rehearse: Rehearse, agent: Scope, store: Store, conversations: Conversations
) -> None:
    scene = rehearse(says("Never."))
    scene.runtime = replace(scene.runtime, model_for=lambda _: Refusing())
    assert scene.run().reason is Reason.ERROR
    (turn,) = conversations.turns(agent.conversation_id)
    assert turn.end_reason == "error: half \\ud800, nul \\x00"
    assert [trace.error for trace in traces(store, turn.id)] == ["half \\ud800, nul \\x00"]


@pytest.mark.spec("C13", "C14")
def test_a_turn_that_somebody_ended_does_nothing_more(
    rehearse: Rehearse, agent: Scope, conversations: Conversations
) -> None:
    made: list[str] = []

    @tool
    def mark(text: str) -> str:
        """Leave a mark."""
        made.append(text)
        if text == "first":
            conversations.end_turn(Scope(agent.conversation_id, Actor(Role.PERSON, "ann")), reason="enough")
        return "marked"

    marks = [calls(("mark", {"text": text})) for text in ("first", "second", "third")]
    scene = rehearse(*marks, says("Done."))
    scene.runtime = replace(scene.runtime, tools=[mark])
    ended = scene.run()
    assert (ended.reason, made) == (Reason.CANCELLED, ["first"])
    assert "enough" in ended.why
    (turn,) = conversations.turns(agent.conversation_id)
    assert turn.end_reason == "enough"


@pytest.mark.spec("T9", "C9")
def test_a_turn_taken_up_when_its_list_has_just_become_clear_can_still_say_so(rehearse: Rehearse, store: Store) -> None:
    lists = [calls(("list_directory", {"path": f"{'./' * n}."})) for n in range(1, 12)]
    last = calls(WRITE, *completes(0).calls)
    scene = rehearse(plans("Look"), *lists, last, says("All done.")).in_mode(Mode.DEFAULT)
    assert scene.run().reason is Reason.WAITING
    approve(store)
    ended = resume(scene)
    assert (ended.reason, ended.text, ended.iterations) == (Reason.COMPLETED, "All done.", 14)


@pytest.mark.spec("C2")
def test_the_calls_of_a_reply_that_was_cut_off_do_not_run_after_a_crash_either(
    rehearse: Rehearse, store: Store, agent: Scope, conversations: Conversations
) -> None:
    scene = rehearse(says("Never asked."))
    turn = conversations.begin_turn(agent, reason="a new request")
    cut_off = Reply("", (RequestedCall("c1", "run_command", {"command": "touch ran"}),), FinishReason.LENGTH)
    here = TurnScope(agent.conversation_id, agent.actor, turn.id)
    TurnWriter(store, here).write([to_stored(UserText("Do it.")), to_stored(cut_off)])
    ended = resume(scene)
    assert (ended.reason, scene.asked) == (Reason.ERROR, [])
    assert "length limit" in ended.why


@pytest.mark.spec("C14", "T15")
def test_what_had_run_before_a_crash_is_told_though_the_run_is_cancelled_at_once(
    rehearse: Rehearse, store: Store, agent: Scope, conversations: Conversations
) -> None:
    scene = rehearse(calls(("run_command", {"command": "echo ran"}), WRITE)).in_mode(Mode.AUTO_EDIT)
    waiting = scene.run()
    assert waiting.reason is Reason.WAITING
    approve(store)
    scene.signal = CancelSignal()
    scene.signal.set("a person pressed Ctrl-C")
    outcome = resume(scene)
    assert (outcome.turn_id, outcome.reason) == (waiting.turn_id, Reason.CANCELLED)
    results = [row.content for row in conversations.turn_messages(outcome.turn_id) if row.kind == "result"]
    assert len(results) == 2
    assert not any("Not run." in result for result in results)


@pytest.mark.spec("C9", "C10")
def test_a_question_of_an_earlier_turn_holds_up_nobody_who_stays(
    rehearse: Rehearse, store: Store, agent: Scope
) -> None:
    assert rehearse(calls(WRITE)).in_mode(Mode.DEFAULT).run().reason is Reason.WAITING
    waits = ("wait_todo", {"todoId": "{{ created[0].id }}", "for": {"person": "Which?"}})
    scene = rehearse(plans("Look"), calls(waits), says("I wait."))
    outcome = scene.run("Something else.")
    assert outcome.reason is Reason.WAITING
    conditions, here = Plans(store), agent.conversation_id
    (held,) = conditions.open_conditions(here)
    conditions.resolve(here, held.condition.id, "This one.", Actor(Role.PERSON, "ann"))
    staying = wait_until_resumable(scene.runtime, outcome.turn_id, scene.signal)
    assert asyncio.run(asyncio.wait_for(staying, 10)) is True


@pytest.mark.spec("T12", "T15")
def test_a_turn_with_many_workers_is_found_again(
    rehearse: Rehearse, store: Store, agent: Scope, conversations: Conversations
) -> None:
    turn = conversations.begin_turn(agent, reason="a new request")
    TurnWriter(store, TurnScope(agent.conversation_id, agent.actor, turn.id)).write([to_stored(UserText("Do it."))])
    worker = Scope(agent.conversation_id, Actor(Role.WORKER, "coder"))
    for _ in range(60):
        conversations.begin_turn(worker, reason="delegated", parent=turn.id)
    outcome = resume(rehearse(says("Done.")))
    assert (outcome.turn_id, outcome.reason) == (turn.id, Reason.COMPLETED)


@pytest.mark.spec("T14")
def test_going_on_again_and_again_asks_for_the_first_request_only() -> None:
    once = resume_prompt("Do it.", "capped: 10 iterations", [OpenItem("1", "Look\n\nThe request was:\n\nElse")])
    twice = resume_prompt(once, "stalled: nothing", [OpenItem("2", "Write")])
    assert twice.endswith("The request was:\n\nDo it.")
    assert "Look" not in twice
    assert twice.count("Continue the last request") == 1


@pytest.mark.spec("T12", "C9", "S12")
def test_a_worker_that_waits_can_be_looked_after_often(rehearse: Rehearse, store: Store) -> None:
    """Taking up a delegation again is no loop of the agent's."""
    mission = ("delegate", {"type": "coder", "mission": "Write x."})
    scene = rehearse(calls(mission), coder=[calls(WRITE)])
    scene.in_mode(Mode.DEFAULT)
    assert scene.run().reason is Reason.WAITING
    for _ in range(6):
        assert resume(scene).reason is Reason.WAITING
    assert len(Approvals(store).waiting()) == 1
    approve(store)
    scene = rehearse(says("It is written."), coder=[says("Written.")]).in_mode(Mode.DEFAULT)
    ended = resume(scene)
    assert (ended.reason, ended.text) == (Reason.COMPLETED, "It is written.")
    assert all(every_call_has_one_result(request.messages) for request in scene.asked)


@pytest.mark.spec("C7")
def test_a_long_turn_that_waits_for_one_of_many_calls_keeps_it_with_its_result(
    rehearse: Rehearse, store: Store
) -> None:
    many = [("list_directory", {"path": f"{'./' * n}."}) for n in range(1, 16)]
    scene = rehearse(calls(*many), calls(*many[:14], WRITE), says("Done."))
    scene.agent = replace(scene.agent, compact_after=20)
    scene.in_mode(Mode.DEFAULT)
    assert scene.run().reason is Reason.WAITING
    approve(store)
    assert resume(scene).reason is Reason.COMPLETED
    assert all(every_call_has_one_result(request.messages) for request in scene.asked)


@pytest.mark.spec("S6", "C13")
def test_calls_beyond_the_limit_of_a_reply_do_not_run_and_the_model_is_told(rehearse: Rehearse) -> None:
    lines = [("run_command", {"command": f"echo {number} >> log"}) for number in range(5)]
    scene = rehearse(calls(*lines), says("Done.")).limits(calls_per_reply=3)
    assert scene.run().reason is Reason.COMPLETED
    assert (Path(scene.runtime.site.root) / "log").read_text().split() == ["0", "1", "2"]
    assert every_call_has_one_result(scene.asked[-1].messages)
    told = [message for message in scene.asked[-1].messages if isinstance(message, CallReturn)]
    assert [message.failed for message in told] == [False] * 3 + [True] * 2
    assert "only the first 3 calls of a reply are run. Call it again in your next reply" in told[-1].text


@pytest.mark.spec("T15", "C13")
def test_the_turn_of_a_worker_that_died_before_its_first_message_ends_with_the_turn_above_it(
    rehearse: Rehearse, store: Store
) -> None:
    conversations = Conversations(store)

    @tool
    def lose_workers() -> str:
        """Leave a worker's turn behind, and one below it, as a process does that is killed when it begins them."""
        scope = scene.runtime.site.scope
        main = conversations.current_turn("s")
        assert main is not None
        lost = conversations.begin_turn(scope, reason="delegated", parent=main.id, owner="gone:1:1")
        conversations.begin_turn(scope, reason="delegated", parent=lost.id, owner="gone:1:1")
        return "lost"

    scene = rehearse(calls(("lose_workers", {})), says("Done."))
    scene.runtime = replace(scene.runtime, tools=(lose_workers,))
    assert scene.run().reason is Reason.COMPLETED
    turns = conversations.turns("s")
    assert [turn.id for turn in turns if turn.open] == []
    reasons = sorted(str(turn.end_reason).partition(":")[0] for turn in turns)
    assert reasons == ["cancelled", "cancelled", "completed"]
