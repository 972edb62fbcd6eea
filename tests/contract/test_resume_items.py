"""A turn that ended with open items is continued by one that takes over copies of them (T14)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.contract.rehearsing import Rehearse, Rehearsing, calls, claims, completes, plans, says

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import BUILT_IN
from punchlist.agent.resume import resume_session
from punchlist.agent.turn_model import TurnResult
from punchlist.conversations.model import TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.plan.model import TurnTodo
from punchlist.verification.goal import Goal
from punchlist.verification.model import Check, Mark

STALLS = [says("I'll continue soon.")] * 9
PERSON = Actor(Role.PERSON, "ann")


def leaves_open(scene: Rehearsing) -> TurnResult:
    """A turn that ends with open items at the first stop."""
    agent = replace(scene.agent, todo_driven=False)
    ended = asyncio.run(scene.runtime.run(agent, "Do it.", scene.signal))
    assert ended.reason is Reason.OPEN
    return ended


def resumed(scene: Rehearsing) -> TurnResult:
    return asyncio.run(asyncio.wait_for(resume_session(scene.runtime, BUILT_IN.__getitem__, scene.signal), 60))


def last_turn(scene: Rehearsing) -> str:
    found = scene.runtime.conversations.last_turn(scene.runtime.site.scope.conversation_id)
    assert found is not None
    return found.id


def plan_of(scene: Rehearsing, turn_id: str) -> list[TurnTodo]:
    scope = scene.runtime.site.scope
    return scene.runtime.plans.snapshot(TurnScope(scope.conversation_id, scope.actor, turn_id)).todos


@pytest.mark.spec("T14", "C13")
def test_a_resumed_turn_is_completed_only_when_the_copies_are_clear(rehearse: Rehearse) -> None:
    scene = rehearse(
        plans("Look", "Write", "Check"), completes(0), says("Later."), says("Everything is done!"), *STALLS
    )
    first = leaves_open(scene)
    second = resumed(scene)
    assert second.reason is Reason.STALLED
    assert [item.title for item in second.open] == ["Write", "Check"]
    old = plan_of(scene, first.turn_id)
    copies = plan_of(scene, second.turn_id)
    assert [todo.verified().copied_from for todo in copies] == [old[1].id, old[2].id]
    assert [todo.status.value for todo in old] == ["completed", "pending", "pending"]


@pytest.mark.spec("T14")
def test_the_copies_can_be_worked_on_and_cleared(rehearse: Rehearse) -> None:
    work = calls(("list_directory", {}), ("complete_todo", {"todoId": "1", "outcome": "done"}))
    scene = rehearse(plans("Look", "Write"), completes(0), says("Later."), work, says("Both are done."))
    leaves_open(scene)
    ended = resumed(scene)
    assert (ended.reason, ended.text) == (Reason.COMPLETED, "Both are done.")
    (copy,) = plan_of(scene, ended.turn_id)
    assert (copy.title, copy.verified().mark) == ("Write", Mark.EVIDENCED)


@pytest.mark.spec("T11", "T14")
def test_a_resumed_request_is_shown_once(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look", "Write"), completes(0), says("Later."), *[says("Later again.")] * 2)
    scene.agent = replace(scene.agent, todo_driven=False)
    leaves_open(scene)
    scene.runtime = replace(scene.runtime, agents={"supervisor": scene.agent})
    for _ in range(2):
        again = resume_session(scene.runtime, lambda _: scene.agent, scene.signal)
        assert asyncio.run(again).reason is Reason.OPEN
    texts = [message.text for message in scene.asked[-1].messages]
    assert "\n".join(texts).count("Do it.") == 1
    assert "\n".join(texts).count("1 item is open, and continuation is off") == 2
    same, first, again_same, _, request, _ = texts
    assert same == again_same == "[An earlier turn on the request below.]"
    assert first.startswith("Later.\n\n[This turn ended as open: ")
    assert request == (
        "Continue the last request. Its open item is on your list. First check what is already done, then finish the "
        "rest.\n\nThe request was:\n\nDo it."
    )


@pytest.mark.spec("T14", "V2")
def test_a_copy_keeps_its_check(rehearse: Rehearse) -> None:
    checked = calls(("create_todo", {"items": [{"title": "Write", "check": "test -f out.txt", "context": "short"}]}))
    false_claim = calls(("list_directory", {}), ("complete_todo", {"todoId": "1", "outcome": "done"}))
    scene = rehearse(checked, says("Later."), false_claim, says("Done."), *STALLS)
    leaves_open(scene)
    ended = resumed(scene)
    assert ended.reason is Reason.STALLED
    (copy,) = plan_of(scene, ended.turn_id)
    assert (copy.status.value, copy.context) == ("pending", "short")
    assert copy.verified().result is not None


@pytest.mark.spec("T14", "X9")
def test_a_new_goal_takes_over_what_is_open(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look"), says("Later."), says("Your new wish is done."), *STALLS)
    assert leaves_open(scene).turn_id == last_turn(scene)
    again = scene.runtime.run(scene.agent, "Another goal.", scene.signal, take_over=last_turn(scene))
    assert [item.title for item in asyncio.run(again).open] == ["Look"]


@pytest.mark.spec("X9", "C13")
def test_items_that_a_person_added_to_the_session_count(rehearse: Rehearse) -> None:
    scene = rehearse(says("Nothing to do."), *STALLS)
    scope = replace(scene.runtime.site.scope, actor=PERSON)
    scene.runtime.checklists.add(scope, "Water the plants", reason="test")
    ended = scene.run()
    assert ended.reason is Reason.STALLED
    assert [item.title for item in ended.open] == ["Water the plants"]
    assert "TodoWrite" in {tool.name for tool in scene.asked[0].tools}


@pytest.mark.spec("T14")
def test_a_completed_turn_leaves_nothing_to_take_over(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look"), calls(("list_directory", {}), claims(0)), says("Done."), says("Nothing to do."))
    assert scene.run().reason is Reason.COMPLETED
    again = scene.runtime.run(scene.agent, "Another goal.", scene.signal, take_over=last_turn(scene))
    ended = asyncio.run(again)
    assert (ended.reason, plan_of(scene, ended.turn_id)) == (Reason.COMPLETED, [])


@pytest.mark.spec("T14", "C13")
def test_an_agent_without_list_tools_does_not_complete_what_it_takes_over(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look"), says("Later."), researcher=[says("All done.")])
    first = leaves_open(scene)
    for agent in (BUILT_IN["researcher"], replace(BUILT_IN["researcher"], todo_driven=True)):
        ended = asyncio.run(scene.runtime.run(agent, "Go on.", scene.signal, take_over=first.turn_id))
        assert (ended.reason, [item.title for item in ended.open]) == (Reason.OPEN, ["Look"])


@pytest.mark.spec("T14", "V3", "C13")
def test_a_resumed_turn_keeps_the_goal_of_the_turn_before_it(rehearse: Rehearse) -> None:
    scene = rehearse(*[says("Done.")] * 9)
    goal = Goal("", (Check(command="test -f made"),))
    first = asyncio.run(scene.runtime.run(scene.agent, "Make it.", scene.signal, until=goal))
    assert (first.reason, "test -f made" in first.why) == (Reason.OPEN, True)
    again = [resumed(scene) for _ in range(2)]
    assert [(ended.reason, "test -f made" in ended.why) for ended in again] == [(Reason.OPEN, True)] * 2
