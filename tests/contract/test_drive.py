"""Drive: the loop owns the list and gives the agent one item at a time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.rehearsing import Rehearse, Rehearsing, calls, plans, says
from tests.contract.test_loop_hostile import resume

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import with_overrides
from punchlist.agent.events import AgentEvent, ListChanged, ReplyReceived
from punchlist.agent.resume import resume_session
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import CallReturn, FinishReason, UserText
from punchlist.plan.model import NewTodo

LOOK: tuple[str, Any] = ("list_directory", {})


def finishes(outcome: str) -> Any:
    return calls(LOOK, ("finish_item", {"outcome": outcome}))


def cannot(reason: str) -> Any:
    return calls(LOOK, ("cannot_do_item", {"reason": reason}))


def driven(rehearse: Rehearse, *lines: Any) -> Rehearsing:
    scene = rehearse(*lines)
    scene.agent = replace(scene.agent, strategy="drive")
    return scene


@pytest.mark.spec("V5")
@pytest.mark.parametrize("planned", [plans("Look", "Write"), says("1. Look\n2. Write")], ids=["call", "text"])
def test_each_item_runs_in_a_fresh_context_with_three_exits(rehearse: Rehearse, planned: Any) -> None:
    scene = driven(rehearse, planned, finishes("It is in x."), finishes("Written."), says("All done."))
    ended = scene.run("Find the needle.")
    assert (ended.reason, ended.open, ended.text) == (Reason.COMPLETED, (), "All done.")
    _, first, second, answer = scene.asked
    exits = {"finish_item", "cannot_do_item", "ask_person"}
    assert {tool.name for tool in second.tools} >= exits
    assert not {tool.name for tool in second.tools} & {"create_todo", "complete_todo", "TodoWrite", "delegate"}
    opening = second.messages[0]
    assert isinstance(opening, UserText)
    assert "Find the needle." in opening.text
    assert "[x] Look: It is in x." in opening.text
    assert "Your item: Write" in opening.text
    assert len(second.messages) == len(first.messages)
    assert answer.tools == ()


@pytest.mark.spec("V5")
def test_an_attempt_is_told_why_the_last_one_failed_and_a_second_refusal_counts(rehearse: Rehearse) -> None:
    scene = driven(rehearse, plans("Look", "Write"), cannot("no map"), cannot("still none"), finishes("ok"), says("."))
    ended = scene.run()
    assert ended.reason is Reason.COMPLETED
    assert [item.status for item in ended.items] == ["cancelled", "completed"]
    assert "no map" in str(scene.asked[2].messages[0])


@pytest.mark.spec("V5", "V2")
def test_the_check_decides_and_three_attempts_are_the_end(rehearse: Rehearse) -> None:
    planned = calls(("create_todo", {"items": [{"title": "Look", "check": {"command": "false"}}]}))
    # Each changes something, so that running the check again is no loop.
    writes = [("write_file", {"path": "x", "content": f"{n}"}) for n in range(60)]
    lines = [calls(write, ("finish_item", {"outcome": "Done!"})) for write in writes]
    scene = driven(rehearse, planned, *lines)
    ended = scene.run()
    assert [item.status for item in ended.items] == ["cancelled"]
    attempts = [turn for turn in scene.runtime.conversations.turns("s") if turn.parent_turn_id == ended.turn_id]
    assert len(attempts) == 3
    # An attempt ends when a check that the model wrote has failed twice in the same way: it may be wrong.
    assert len(scene.asked) == 1 + 3 * 2 + 1
    assert "its check failed 2 times in the same way" in str(scene.asked[3].messages[0])


@pytest.mark.spec("V5")
@pytest.mark.parametrize("second", [plans("Write"), says("complete")], ids=["adds", "answers"])
def test_a_plan_with_fewer_items_than_the_request_has_points_is_asked_about_once(
    rehearse: Rehearse, second: Any
) -> None:
    ends = [finishes("ok")] * (2 if second == plans("Write") else 1)
    scene = driven(rehearse, plans("Look"), second, *ends, says("Done."))
    ended = scene.run("Repair it:\n\n1. Look at a\n2. Write b\n3. Say c")
    assert ended.reason is Reason.COMPLETED
    assert len(ended.items) == len(ends)
    assert "The request lists 3 points, and your plan has one item." in str(scene.asked[1].messages[-2:])


@pytest.mark.spec("V5")
def test_an_attempt_ends_when_the_same_call_fails_three_times_in_the_same_way(rehearse: Rehearse) -> None:
    wrong = calls(("edit_file", {"path": "notes.txt", "old": "no such line", "new": "x"}))
    scene = driven(rehearse, plans("Look"), *[wrong] * 3, finishes("Done another way."), says("."))
    (scene.runtime.site.root / "notes.txt").write_text("first\nsecond\n")
    ended = scene.run()
    assert ended.reason is Reason.COMPLETED
    assert [item.status for item in ended.items] == ["completed"]
    # The second attempt, in a fresh context, is told what does not work and what the file has instead.
    told = str(scene.asked[4].messages[0])
    assert "failed 3 times in the same way" in told
    assert "2: second" in told


@pytest.mark.spec("V5")
def test_an_attempt_ends_when_the_same_call_is_repeated_without_end(rehearse: Rehearse) -> None:
    again = calls(("write_file", {"path": "x.txt", "content": "x"}))
    # The first one writes; the next three change nothing.
    scene = driven(rehearse, plans("Write x"), *[again] * 4, finishes("x.txt is there."), says("."))
    ended = scene.run()
    assert [item.status for item in ended.items] == ["completed"]
    told = str(scene.asked[5].messages[0])
    assert "write_file {'path': 'x.txt', 'content': 'x'} was made 3 times in the same way" in told
    assert "x.txt has this content already" in told


@pytest.mark.spec("V5")
def test_giving_up_right_after_a_call_that_failed_is_refused_once(rehearse: Rehearse) -> None:
    wrong = calls(("read_file", {"path": "note.txt"}))
    gives_up = calls(("cannot_do_item", {"reason": "There is no such file."}))
    scene = driven(rehearse, plans("Look"), wrong, gives_up, finishes("It is notes.txt."), says("."))
    assert [item.status for item in scene.run().items] == ["completed"]
    assert "Not yet: your last call failed, and most calls can be corrected." in str(scene.asked[3].messages[-1])
    scene = driven(rehearse, plans("Look"), *[wrong, gives_up, gives_up] * 2, says("."))
    assert [item.status for item in scene.run().items] == ["cancelled"]


@pytest.mark.spec("V5")
def test_the_plan_is_made_with_the_files_that_the_request_names(rehearse: Rehearse) -> None:
    scene = driven(rehearse, plans("Look"), finishes("seen"), says("."))
    (scene.runtime.site.root / "notes.txt").write_text("the first line\n")
    scene.run("Sort notes.txt.")
    planning = scene.asked[0]
    assert "notes.txt:\n```\nthe first line\n" in str([m.text for m in planning.messages if isinstance(m, UserText)][1])
    assert [tool.name for tool in planning.tools] == ["create_todo"]


@pytest.mark.spec("V5")
def test_a_plan_that_is_refused_is_written_again_and_else_made_of_the_points_of_the_request(
    rehearse: Rehearse,
) -> None:
    refused = calls(("create_todo", {"items": [{"title": "Look", "check": {"command": "true", "file": "x"}}]}))
    scene = driven(rehearse, refused, plans("Look"), finishes("seen"), says("."))
    assert [item.title for item in scene.run("Look at it.").items] == ["Look"]
    # Its result says what is wrong: nothing else is added.
    assert isinstance(scene.asked[1].messages[-1], CallReturn)
    scene = driven(rehearse, *[refused] * 3, finishes("a"), finishes("b"), says("."))
    assert [item.title for item in scene.run("Do this:\n\n1. Look at a\n2. Write b").items] == ["Look at a", "Write b"]


@pytest.mark.spec("V5", "C13")
def test_a_turn_that_has_skipped_every_item_is_not_completed(rehearse: Rehearse) -> None:
    ended = driven(rehearse, *[says("Hello, done.")] * 60).run("Write x.")
    assert (ended.reason, ended.open) == (Reason.OPEN, ())
    assert ended.why == "no item could be finished. Skipped: “Write x.”"
    assert "Ended as open: no item could be finished." in ended.text


@pytest.mark.spec("V5", "C8", "C13")
@pytest.mark.parametrize("added", ["plan", "checklist"])
def test_a_turn_that_has_skipped_an_item_of_a_person_is_not_completed(rehearse: Rehearse, added: str) -> None:
    gives_up = [cannot("no"), cannot("still no")]
    scene = driven(rehearse, plans("Look", "Write"), finishes("seen"), *gives_up, *gives_up, says("Look is done."))
    person = Actor(Role.PERSON, "ann")

    def add(event: AgentEvent) -> None:
        plan = [item for item in event.lists.items if item.id] if isinstance(event, ListChanged) else []
        if added == "plan" and len(plan) == 2:
            scope = TurnScope("s", person, event.turn_id)
            scene.runtime.plans.create(scope, [NewTodo("Water the plants")], reason="todos add")

    if added == "checklist":
        scene.runtime.checklists.add(Scope("s", person), "Water the plants", reason="todos add")
    scene.runtime = replace(scene.runtime, on_event=add)
    ended = scene.run()
    assert (ended.reason, ended.open) == (Reason.OPEN, ())
    assert ended.why == "what a person added could not be finished. Skipped: “Water the plants”"


@pytest.mark.spec("V5", "C10")
def test_an_item_that_needs_a_person_waits_while_the_others_go_on(rehearse: Rehearse) -> None:
    asks = calls(("ask_person", {"question": "Which region?"}))
    scene = driven(rehearse, plans("Deploy", "Write"), asks, finishes("Written."))
    ended = scene.run()
    assert ended.reason is Reason.WAITING
    assert "Which region?" in ended.why
    assert [item.title for item in ended.open] == ["Deploy"]


def answers(scene: Rehearsing, answer: str) -> None:
    """A person answers the only question."""
    plans = scene.runtime.plans
    (held,) = plans.open_conditions("s")
    plans.resolve("s", held.condition.id, answer, Actor(Role.PERSON, "ann"))


@pytest.mark.spec("V5", "C10")
def test_the_answer_of_a_person_reaches_the_agent_of_the_item(rehearse: Rehearse) -> None:
    asks = calls(("ask_person", {"question": "Which colour?\nRed or blue?"}))
    scene = driven(rehearse, plans("Paint", "Look"), asks, finishes("seen"), finishes("Painted."), says("All done."))
    assert scene.run().reason is Reason.WAITING
    answers(scene, "the red one")
    ended = resume(scene)
    assert (ended.reason, ended.open, ended.text) == (Reason.COMPLETED, (), "All done.")
    (opening, *_) = scene.asked[3].messages
    assert isinstance(opening, UserText)
    assert "Your item: Paint\nReceived: answer to “Which colour? Red or blue?”: the red one" in opening.text


@pytest.mark.spec("V5", "T14")
def test_a_resumed_turn_keeps_its_strategy_unless_another_is_named(rehearse: Rehearse) -> None:
    """Also the turn that continues one that has ended."""
    asks, outage = calls(("ask_person", {"question": "Which colour?"})), replace(says(""), fault="unauthorized")
    scene = driven(rehearse, plans("Paint"), asks, outage, finishes("Painted."), says("All done."))
    assert scene.run("Paint it.").reason is Reason.WAITING
    scene.agent = replace(scene.agent, strategy="loop")
    answers(scene, "red")
    assert [resume(scene).reason for _ in range(2)] == [Reason.ERROR, Reason.COMPLETED]
    for request in scene.asked[2:4]:
        assert "finish_item" in {tool.name for tool in request.tools}
        assert str(request.messages[0].text).startswith("The whole request, for context:\n\nPaint it.\n\nYour item")
        assert "Received: answer to “Which colour?”: red" in str(request.messages[0].text)
    scene = driven(rehearse, plans("Paint"), asks, says("It is a loop now."), *[says("Soon.")] * 9)
    scene.run("Paint it.")
    answers(scene, "red")
    loop = replace(scene.agent, strategy="loop")
    running = resume_session(scene.runtime, lambda _: loop, scene.signal, strategy="loop")
    asyncio.run(asyncio.wait_for(running, 60))
    assert "complete_todo" in {tool.name for tool in scene.asked[2].tools}


@pytest.mark.spec("C5", "C10")
def test_an_attempt_before_a_stall_knows_the_answer_of_a_person(rehearse: Rehearse) -> None:
    waits = calls(("wait_todo", {"todoId": 1, "for": {"person": "Which colour?"}}))
    scene = rehearse(plans("Paint"), waits, says("I wait."), *[says("Soon.")] * 4, finishes("Painted."), says("Done."))
    assert scene.run().reason is Reason.WAITING
    answers(scene, "the red one")
    assert resume(scene).reason is Reason.COMPLETED
    fresh = next(request for request in scene.asked if "finish_item" in {tool.name for tool in request.tools})
    assert "answer to “Which colour?”: the red one" in str(fresh.messages[0])


@pytest.mark.spec("V5")
def test_texts_of_several_lines_are_shown_on_one(rehearse: Rehearse) -> None:
    failing = calls(("create_todo", {"items": [{"title": "Look", "check": "true\nfalse"}, {"title": "Write"}]}))
    scene = driven(
        *(rehearse, failing, finishes("It\nis in x."), cannot("no\nmap"), cannot("still\nnone")),
        *(finishes("Written:\n\n- x"), says("")),
    )
    ended = scene.run()
    texts = [message.text for request in scene.asked for message in request.messages]
    assert [text for text in texts if "\\x0a" in text] == []
    assert ended.text.splitlines() == [
        *("1. [-] Look: Skipped after 2 attempts: still none", "2. [x] Write: Written: - x")
    ]


@pytest.mark.spec("V5", "C13")
def test_a_reply_that_is_cut_off_is_a_failed_attempt_and_an_outage_ends_the_turn(rehearse: Rehearse) -> None:
    cut = says("and the", finish=FinishReason.LENGTH)
    assert driven(rehearse, plans("Look"), cut, finishes("ok"), says("Done.")).run().reason is Reason.COMPLETED
    outage = driven(rehearse, plans("Look"), replace(says(""), fault="unauthorized"))
    ended = outage.run()
    assert (ended.reason, [item.title for item in ended.open]) == (Reason.ERROR, ["Look"])


@pytest.mark.spec("V5", "C13")
def test_an_empty_answer_is_replaced_by_the_outcomes(rehearse: Rehearse) -> None:
    ended = driven(rehearse, plans("Look"), finishes("It is in x."), says("")).run()
    assert (ended.reason, ended.text) == (Reason.COMPLETED, "1. [x] Look: It is in x.")


@pytest.mark.spec("V5", "X9", "C13")
def test_items_that_are_added_while_the_model_answers_are_worked_on(rehearse: Rehearse) -> None:
    lines = [plans("Look"), finishes("It is in x."), says("Done."), finishes("Written."), says("All done.")]
    scene = driven(rehearse, *lines)
    person, added = Actor(Role.PERSON, "ann"), list[object]()

    def add(event: AgentEvent) -> None:
        if isinstance(event, ReplyReceived) and event.text == "Done." and not added:
            scope = Scope("s", person)
            added.append(scene.runtime.checklists.add(scope, "Write", reason="todos add"))

    scene.runtime = replace(scene.runtime, on_event=add)
    ended = scene.run()
    assert (ended.reason, ended.open, ended.text) == (Reason.COMPLETED, (), "All done.")
    assert [(item.title, item.status) for item in ended.items] == [("Look", "completed"), ("Write", "completed")]


@pytest.mark.spec("V5", "T14")
def test_a_new_goal_is_planned_whatever_the_session_had_before(rehearse: Rehearse) -> None:
    scene = driven(rehearse, plans("Write"), finishes("Written."), finishes("Found."), says("All done."))
    person = Scope("s", Actor(Role.PERSON, "ann"))
    scene.runtime.checklists.add(person, "Done before", reason="todos add")
    scene.runtime.checklists.advance(person, "1", ChecklistAction.COMPLETE, reason="todos done")
    scene.runtime.checklists.add(person, "Look", reason="todos add")
    ended = scene.run("Write a poem.")
    assert (ended.reason, len(scene.asked)) == (Reason.COMPLETED, 4)
    assert "planned already" in str(scene.asked[0].messages)
    assert [(item.title, item.status) for item in ended.items] == [
        *(("Write", "completed"), ("Done before", "completed"), ("Look", "completed"))
    ]


# --- limits -----------------------------------------------------------------------------------------------


@pytest.mark.spec("V5", "T9")
def test_a_limit_of_model_calls_counts_those_of_the_attempts(rehearse: Rehearse) -> None:
    looks = [calls(("list_directory", {"path": f"{n}"})) for n in range(20)]
    scene = driven(rehearse, plans("Look", "Write"), *looks)
    scene.agent = with_overrides(scene.agent, iterations=5)
    ended = scene.run()
    assert (ended.reason, ended.why) == (Reason.CAPPED, "limit of 5 iterations reached")
    # The last one is the report.
    assert [bool(request.tools) for request in scene.asked] == [True] * 5 + [False]
    assert [item.title for item in ended.open] == ["Look", "Write"]


@pytest.mark.spec("V5", "C4", "C5")
def test_limits_of_continuations_hold_for_each_attempt(rehearse: Rehearse) -> None:
    scene = driven(rehearse, plans("Look"), *[says(f"Later {n}.") for n in range(30)])
    scene.agent = with_overrides(scene.agent, continuations=1, stall_after=1)
    scene.run()
    # The plan, three attempts with one continuation each, the answer.
    assert len(scene.asked) == 1 + 3 * 2 + 1


@pytest.mark.spec("V5", "C6")
def test_the_answer_is_not_asked_for_beyond_the_budget(rehearse: Rehearse) -> None:
    plan, work = replace(plans("Look"), tokens=2_000), replace(finishes("It is in x."), tokens=9_500)
    scene = driven(rehearse, plan, work, says("All done.")).limits(tokens=11_600)
    ended = scene.run()
    assert (len(scene.asked), "Look: It is in x." in ended.text) == (2, True)
    assert (ended.reason, ended.usage.total <= 11_600) == (Reason.COMPLETED, True)


@pytest.mark.spec("V5", "C8", "C13")
def test_an_answer_that_hides_a_skipped_item_is_completed_by_it(rehearse: Rehearse) -> None:
    steps = [cannot("no map"), cannot("still no map"), finishes("Written.")]
    hides = driven(rehearse, plans("Look", "Write"), *steps, says("All fine, everything is done!"))
    ended = hides.run()
    assert ended.reason is Reason.COMPLETED
    assert ended.text.startswith("All fine, everything is done!\n\nNot done:\n- Look: Skipped after 2 attempts: ")
    stored = [message.content for message in hides.runtime.conversations.messages("s")]
    assert any("Not done:\n- Look" in content for content in stored)


@pytest.mark.spec("V5", "C13")
def test_an_answer_that_names_the_skipped_item_stays_as_it_is(rehearse: Rehearse) -> None:
    steps = [cannot("no map"), cannot("still no map"), finishes("Written.")]
    names = driven(rehearse, plans("Look", "Write"), *steps, says("Written; could not look: no map."))
    assert names.run().text == "Written; could not look: no map."
