"""The loop: a turn ends when its list is clear, or with the name of what stopped it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.front import todo
from tests.contract.rehearsing import Rehearsing, calls, completes, every_call_has_one_result, plans, says
from tests.contract.test_context import looks
from tests.contract.test_loop_hostile import WRITE, approve, resume

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import BUILT_IN
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import CallReturn, FinishReason, Reply, UserText
from punchlist.models.rehearsal import RehearsedReply
from punchlist.plan.lifecycle import PlanStatus
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode


@pytest.fixture
def rehearse(store: Store, agent: Scope, tmp_path: Path) -> Any:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return lambda *replies, **agents: Rehearsing(store, agent, folder, *replies, **agents)


@pytest.mark.spec("C13")
def test_an_answer_without_a_list_completes_the_turn(rehearse: Any) -> None:
    ended = rehearse(says("Forty-two.")).run()
    assert (ended.reason, ended.text, ended.iterations) == (Reason.COMPLETED, "Forty-two.", 1)


@pytest.mark.spec("T10", "C2", "C3")
def test_an_agent_that_stops_early_is_sent_back_to_its_list(rehearse: Any) -> None:
    scene = rehearse(plans("Look", "Write"), completes(0), says("I'll continue…"), completes(1), says("Done."))
    ended = scene.run()
    assert (ended.reason, ended.text, ended.continuations) == (Reason.COMPLETED, "Done.", 1)
    told = [message.text for message in scene.asked[-1].messages if isinstance(message, UserText)]
    assert any("1 item is still open" in text and "“Write”" in text for text in told)


@pytest.mark.spec("C5")
def test_an_agent_that_changes_nothing_is_stopped_as_stalled(rehearse: Any) -> None:
    ended = rehearse(plans("Look"), *[says("Soon.")] * 20).run()
    assert (ended.reason, ended.continuations) == (Reason.STALLED, 3)
    assert [item.title for item in ended.open] == ["Look"]


@pytest.mark.spec("C2", "C13")
def test_continuations_have_an_end(rehearse: Any) -> None:
    lines = [line for n in range(10) for line in (*looks(2, at=n), says("More to come."))]
    ended = rehearse(plans(*"abcdefghijkl"), *lines).limits(continuations=3).run()
    assert (ended.reason, ended.continuations) == (Reason.CAPPED, 3)


@pytest.mark.spec("C4")
def test_a_completed_item_gives_a_continuation_back(rehearse: Any) -> None:
    lines = [line for n in range(10) for line in (completes(n), says("More to come."))]
    ended = rehearse(plans(*"abcdefghij"), *lines).limits(continuations=1).run()
    assert (ended.reason, ended.continuations) == (Reason.COMPLETED, 9)


@pytest.mark.spec("C4", "T15")
@pytest.mark.parametrize(("status", "reason"), [("completed", Reason.COMPLETED), ("cancelled", Reason.CAPPED)])
def test_a_resumed_turn_counts_as_the_running_one(rehearse: Any, status: str, reason: Reason) -> None:
    ends = calls(("list_directory", {}), ("complete_todo", {"todoId": 1, "outcome": "x", "status": status}))
    waits = calls(("wait_todo", {"todoId": 2, "for": {"person": "Which?"}}))
    lines = [plans("A", "B"), says("Soon."), ends, waits, says("I wait."), says("Soon."), completes(1), says(".")]
    scene = rehearse(*lines)
    scene.limits(continuations=1)
    assert scene.run().reason is Reason.WAITING
    (held,) = scene.runtime.plans.open_conditions("s")
    scene.runtime.plans.resolve("s", held.condition.id, "This.", Actor(Role.PERSON, "ann"))
    assert resume(scene).reason is reason


@pytest.mark.spec("C4", "T15")
def test_a_resumed_turn_counts_what_its_checklist_has_completed(rehearse: Any, store: Store) -> None:
    def writes(*statuses: str) -> Any:
        return "TodoWrite", {"todos": [todo(name, status) for name, status in zip("AB", statuses, strict=True)]}

    ticks = calls(("list_directory", {}), writes("completed", "pending"))
    lines = [calls(writes("pending", "pending")), says("Soon."), ticks]
    scene = rehearse(*lines, calls(WRITE), says("Soon."), calls(writes("completed", "completed")), says("Done."))
    scene.agent = replace(BUILT_IN["coder"], history=0)
    scene.limits(continuations=1).in_mode(Mode.DEFAULT)
    assert scene.run().reason is Reason.WAITING
    approve(store)
    assert resume(scene).reason is Reason.COMPLETED


@pytest.mark.spec("C4")
def test_a_turn_has_at_most_fifty_continuations(rehearse: Any) -> None:
    titles = [f"Part {n}" for n in range(60)]
    lines = [line for n in range(60) for line in (completes(n), says("More to come."))]
    scene = rehearse(plans(*titles), *lines).limits(base_iterations=500, max_iterations=500)
    ended = scene.run()
    assert (ended.reason, ended.why) == (Reason.CAPPED, "limit of 50 continuations in one turn reached")
    assert (ended.continuations, len(ended.open)) == (50, 9)


@pytest.mark.spec("C1", "C13")
def test_with_continuation_off_the_turn_ends_open(rehearse: Any) -> None:
    scene = rehearse(plans("Look"), says("That was it."))
    scene.agent = replace(scene.agent, todo_driven=False)
    assert scene.run().reason is Reason.OPEN


@pytest.mark.spec("T9")
def test_a_turn_without_a_list_has_ten_iterations(rehearse: Any) -> None:
    ended = rehearse(*[calls(("find_files", {"pattern": f"*{n}"})) for n in range(30)]).run()
    assert (ended.reason, ended.iterations) == (Reason.CAPPED, 10)


@pytest.mark.spec("T9")
def test_a_list_that_is_not_clear_gives_it_more_up_to_fifty(rehearse: Any) -> None:
    some = [calls(("read_file", {"path": f"{n}"})) for n in range(80)]
    ended = rehearse(plans("Look"), *some).run()
    assert (ended.reason, ended.iterations) == (Reason.CAPPED, 50)


@pytest.mark.spec("C2", "C13")
@pytest.mark.parametrize("finish", [FinishReason.LENGTH, FinishReason.CONTENT_FILTER, FinishReason.ERROR])
def test_a_model_that_is_cut_off_is_not_continued(rehearse: Any, finish: FinishReason) -> None:
    ended = rehearse(plans("Look"), says("and the", finish=finish)).run()
    assert (ended.reason, ended.continuations) == (Reason.ERROR, 0)


@pytest.mark.spec("C13")
def test_a_model_that_refuses_ends_the_turn_with_its_words(rehearse: Any) -> None:
    ended = rehearse(RehearsedReply(fault="unauthorized")).run()
    assert (ended.reason, ended.why) == (Reason.ERROR, "The key is wrong.")


@pytest.mark.spec("C6")
def test_tokens_are_a_budget(rehearse: Any) -> None:
    replies = [RehearsedReply(calls=(("read_file", {"path": f"{n}"}),), tokens=8_000) for n in range(9)]
    ended = rehearse(*replies).limits(tokens=30_000).run()
    assert (ended.reason, ended.iterations) == (Reason.BUDGET, 2)


@pytest.mark.spec("C14")
def test_a_person_ends_it_while_the_model_thinks(rehearse: Any) -> None:
    scene = rehearse(plans("Look"), says("", delay=50))
    scene.runtime = replace(scene.runtime, model_for=lambda _: _Cancels(scene))
    ended = scene.run()
    assert (ended.reason, ended.why) == (Reason.CANCELLED, "enough")


class _Cancels:
    """Somebody presses the button while the second question is out."""

    def __init__(self, scene: Rehearsing) -> None:
        self._scene = scene
        self.name, self.info = scene.model.name, scene.model.info

    async def ask(self, request: Any, hear: Any = None) -> Reply:
        if self._scene.asked:
            self._scene.signal.set("enough")
        return await self._scene.model.ask(request, hear)


@pytest.mark.spec("C9", "C13")
def test_a_call_that_waits_for_a_person_makes_the_turn_wait(rehearse: Any) -> None:
    scene = rehearse(calls(("write_file", {"path": "x", "content": ""}))).in_mode(Mode.DEFAULT)
    ended = scene.run()
    assert (ended.reason, ended.continuations) == (Reason.WAITING, 0)
    assert "write_file" in ended.why


# --- what the model is told ------------------------------------------------------------------------------------


@pytest.mark.spec("T11")
def test_the_request_and_the_list_are_always_in_view_and_the_beginning_never_changes(rehearse: Any) -> None:
    scene = rehearse(plans("Look", "Write"), *looks(30), completes(0), completes(1), says("Done."))
    assert scene.run("Find the needle.").reason is Reason.COMPLETED
    first = scene.asked[0]
    for request in scene.asked:
        assert (request.system, request.tools) == (first.system, first.tools)
        assert request.messages[0] == UserText("Find the needle.")
        assert every_call_has_one_result(request.messages)
    *_, state = scene.asked[10].messages
    assert isinstance(state, UserText)
    assert "Plan: 0 of 2 items ended." in state.text
    assert "Look" in state.text
    # What was sent before is sent again as it was: only the state at the end differs.
    assert scene.asked[10].messages[:-1] == scene.asked[11].messages[: len(scene.asked[10].messages) - 1]


@pytest.mark.spec("C7")
def test_a_long_turn_is_made_short_without_losing_a_result(rehearse: Any) -> None:
    scene = rehearse(plans("Look"), *looks(40), completes(0), says("Done."))
    assert scene.run("Find the needle.").reason is Reason.COMPLETED
    longest = max(len(request.messages) for request in scene.asked)
    assert longest <= scene.agent.compact_after + 2
    last = scene.asked[-1].messages
    assert last[0] == UserText("Find the needle.")
    assert any(isinstance(message, UserText) and message.text.startswith("Summary of") for message in last)
    assert every_call_has_one_result(last)


@pytest.mark.spec("T8")
def test_planning_is_spoken_of_only_to_those_who_can(rehearse: Any) -> None:
    scene = rehearse(says("Done."))
    scene.run()
    assert "create_todo" in scene.asked[0].system
    plain = rehearse(says("Done."))
    plain.agent = replace(plain.agent, tools=("read_file",))
    plain.run()
    assert "create_todo" not in plain.asked[0].system
    assert [tool.name for tool in plain.asked[0].tools] == ["read_file"]


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("unknown", {}, "There is no tool 'unknown'"),
        ("read_file", "{broken", "arguments: must be an object"),
        ("read_file", {"pth": 1}, "path: is required"),
        ("complete_todo", {"todoId": "x", "outcome": "y"}, "There is no todo"),
    ],
)
def test_a_wrong_call_is_a_result_that_the_model_can_act_on(
    rehearse: Any, tool: str, arguments: Any, told: str
) -> None:
    scene = rehearse(calls((tool, arguments)), says("I see."))
    assert scene.run().reason is Reason.COMPLETED
    (result,) = [message for message in scene.asked[-1].messages if isinstance(message, CallReturn)]
    assert result.failed
    assert told in result.text


# --- workers -------------------------------------------------------------------------------------------------


@pytest.mark.spec("T12", "T13")
def test_a_worker_works_in_a_turn_of_its_own_and_its_report_comes_back(rehearse: Any, store: Store) -> None:
    delegated = calls(("delegate", {"type": "researcher", "mission": "Find it.", "todoId": "{{ created[0].id }}"}))
    scene = rehearse(
        plans("Find"),
        delegated,
        completes(0),
        says("Done."),
        researcher=[calls(("find_files", {"pattern": "*"})), says("It is in x.")],
    )
    outcome = scene.run()
    assert outcome.reason is Reason.COMPLETED
    (report,) = [m for m in scene.asked[-1].messages if isinstance(m, CallReturn) and m.tool == "delegate"]
    assert report.text == 'It is in x.\n\nWhat it did (1 successful calls):\n- find_files: {"pattern":"*"}'
    mission, *_ = scene.model.requests["researcher"]
    assert mission.messages[0] == UserText("Find it.\n\nItem: Find")
    assert not {tool.name for tool in mission.tools} & {"create_todo", "complete_todo", "delegate", "write_file"}
    turns = scene.runtime.conversations.turns("s")
    assert [turn.parent_turn_id for turn in turns if turn.agent_id == "researcher"] == [outcome.turn_id]
    here = TurnScope("s", scene.runtime.site.scope.actor, outcome.turn_id)
    (todo,) = scene.runtime.plans.list(here, frozenset(PlanStatus)).items
    assert todo.started_at is not None


@pytest.mark.spec("T12")
def test_a_worker_that_fails_is_a_result_that_the_supervisor_can_act_on(rehearse: Any) -> None:
    scene = rehearse(
        calls(("delegate", {"type": "writer", "mission": "Write it."})),
        says("Then I do it myself."),
        writer=[RehearsedReply(fault="bad_request")],
    )
    assert scene.run().reason is Reason.COMPLETED
    (report,) = [message for message in scene.asked[-1].messages if isinstance(message, CallReturn)]
    assert report.failed
    assert "The writer did not finish. Ended as error" in report.text


# --- on record ------------------------------------------------------------------------------------------------


@pytest.mark.spec("T14", "T15")
def test_everything_is_on_record_and_the_next_turn_begins_without_the_old_list(rehearse: Any) -> None:
    scene = rehearse(plans("Look"), *[says("Soon.")] * 7, says("Hello again."))
    first = scene.run("One.")
    second = scene.run("Two.")
    assert (first.reason, second.reason) == (Reason.STALLED, Reason.COMPLETED)
    ends = {turn.id: turn.end_reason for turn in scene.runtime.conversations.turns("s")}
    assert str(ends[first.turn_id]).startswith("stalled: ")
    said = [row.content for row in scene.runtime.conversations.messages("s") if row.role == "user"]
    assert said[0] == "One."
    assert said[-1] == "Two."
    told = [message.text for message in scene.asked[-1].messages if isinstance(message, UserText)]
    assert told[-1] == "Two."
    assert not any(text.startswith("<state>") for text in told)


@pytest.mark.spec("T11")
def test_of_earlier_turns_the_last_messages_are_told_and_none_of_the_workers(rehearse: Any) -> None:
    work = calls(("delegate", {"type": "researcher", "mission": "Find it."}))
    scene = rehearse(work, says("It is in x."), says("As I said."), researcher=[says("In x, I think.")])
    scene.run("Where is it?")
    scene.run("Say it again.")
    first, *_ = scene.asked[-1].messages
    assert first == UserText("Where is it?")
    told = [message.text for message in scene.asked[-1].messages if isinstance(message, UserText | Reply)]
    assert "It is in x." in told
    assert "In x, I think." not in told
    assert "Find it." not in told
    assert every_call_has_one_result(scene.asked[-1].messages)


@pytest.mark.spec("C6", "C13")
def test_the_time_of_a_turn_ends_a_model_that_takes_longer(rehearse: Any) -> None:
    ended = rehearse(plans("Look"), says("never", delay=600)).limits(seconds=0.5).run()
    assert (ended.reason, ended.why, [item.title for item in ended.open]) == (
        Reason.BUDGET,
        "the time limit of 0.5 seconds is reached",
        ["Look"],
    )


@pytest.mark.spec("C6")
def test_the_time_of_a_turn_ends_a_tool_that_takes_longer(rehearse: Any) -> None:
    scene = rehearse(calls(("run_command", {"command": "sleep 600"})), says("Never said."))
    ended = scene.limits(seconds=1.0).run()
    assert (ended.reason, ended.last_text) == (Reason.BUDGET, "")
