"""Reminders of the list (W7): one for a session without, one when it has not changed for long, none twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.rehearsing import Rehearse, Rehearsing, calls, completes, plans, says
from tests.contract.test_context import looks, said

from punchlist.agent import runtime
from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import BUILT_IN
from punchlist.agent.message_kinds import REMINDER
from punchlist.kernel.processes import current_process
from punchlist.models.model import ModelInfo, ModelRequest, Reply, TextListener

FIRST = "There is no todo list yet."
LATER = "The todo list has not changed for"


def new_reminders(scene: Rehearsing) -> list[tuple[int, str]]:
    """The reminders that came new with each request, by its number."""
    found: list[tuple[int, str]] = []
    seen = 0
    for number, request in enumerate(scene.asked):
        told = reminders(request)
        later = [text for text in told if text.startswith(LATER)]
        found += [(number, text) for text in told if text.startswith(FIRST)]
        found += [(number, text) for text in later[seen:]]
        seen = len(later)
    return found


def reminders(request: ModelRequest) -> list[str]:
    """The first one of a session is part of the state; later ones are messages that stay."""
    texts = [text.removeprefix("<state>\n") for text in said(request.messages)]
    return [text for text in texts if text.startswith((FIRST, LATER))]


def reminding(rehearse: Rehearse, after: int | None, *lines: Any, who: str = "supervisor") -> Rehearsing:
    scene = rehearse(*lines)
    scene.agent = replace(BUILT_IN[who], remind_after=after, compact_after=1_000)
    return scene


@pytest.mark.spec("W7")
@pytest.mark.parametrize(("who", "tool"), [("supervisor", "create_todo"), ("coder", "TodoWrite")])
def test_a_session_without_a_list_is_told_of_it_once(rehearse: Rehearse, who: str, tool: str) -> None:
    scene = reminding(rehearse, 10, *looks(4), says("One."), says("Two."), says("Three."), who=who)
    scene.run("First.")
    assert [number for number, _ in new_reminders(scene)] == [0]
    assert f"write a list with {tool}" in reminders(scene.asked[0])[0]
    scene.run("Second.")
    scene.run("Third.")
    told = [text for request in scene.asked[5:] for text in said(request.messages[-1:])]
    assert told == ["Second.", "Third."]


@pytest.mark.spec("W7")
def test_a_session_is_told_once_also_where_nothing_of_earlier_turns_is_told(rehearse: Rehearse) -> None:
    scene = reminding(rehearse, 10, says("One."), says("Two."))
    scene.agent = replace(scene.agent, history=0)
    scene.run("First.")
    scene.run("Second.")
    assert [len(reminders(request)) for request in scene.asked] == [1, 0]


@pytest.mark.spec("W7", "T15")
def test_a_turn_that_is_taken_up_after_a_crash_is_not_told_again(
    rehearse: Rehearse, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = reminding(rehearse, 10, says("Done."))
    alive = scene.runtime
    scene.runtime = replace(alive, model_for=lambda _: _Dies())
    with monkeypatch.context() as patched:
        # Of a process that has ended since.
        gone = f"{current_process().split(':')[0]}:999999999:1"
        patched.setattr(runtime, "current_process", lambda: gone)
        with pytest.raises(_Crash):
            scene.run()
    left = alive.conversations.current_turn("s")
    assert left is not None
    ended = asyncio.run(alive.resume(scene.agent, left.id, scene.signal))
    assert ended.reason is Reason.COMPLETED
    assert [len(reminders(request)) for request in scene.asked] == [1]


class _Crash(BaseException):
    """Nobody handles it: what was on record stays as it was."""


class _Dies:
    name, info = "mortal", ModelInfo()

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:  # noqa: ARG002
        raise _Crash


@pytest.mark.spec("W7")
def test_a_session_that_has_a_list_is_not_told_that_there_is_none(rehearse: Rehearse) -> None:
    todo = {"content": "Write", "activeForm": "Writing", "status": "pending"}
    scene = reminding(rehearse, 10, calls(("TodoWrite", {"todos": [todo]})), says("Soon."), says("Later."))
    scene.agent = replace(scene.agent, todo_driven=False, history=0)
    scene.run("First.")
    scene.run("Second.")
    assert reminders(scene.asked[-1]) == []


@pytest.mark.spec("W7")
@pytest.mark.parametrize("after", [3, 10])
def test_a_list_that_does_not_change_is_spoken_of_after_so_many_replies_and_once(
    rehearse: Rehearse, after: int
) -> None:
    idle = looks(after + 5)
    scene = reminding(rehearse, after, plans("Look", "Write"), *idle, completes(0), *idle, completes(1), says("Done."))
    assert scene.run().reason is Reason.COMPLETED
    first, second, third = new_reminders(scene)
    assert (first[0], first[1].startswith(FIRST)) == (0, True)
    # The plan is made by the first reply; a reminder comes before the request that follows so many without a change.
    assert second[0] == 1 + after
    assert second[1].startswith(f"{LATER} {after} steps. ")
    assert "“Look”" in second[1]
    # It is done by the reply after that, and then the next state has its own.
    assert third[0] == 1 + len(idle) + 1 + after
    assert "“Write”" in third[1]


@pytest.mark.spec("W7")
def test_where_nothing_is_open_nothing_is_spoken_of(rehearse: Rehearse) -> None:
    scene = reminding(rehearse, 2, plans("Look"), completes(0), *looks(7), says("Done."))
    assert scene.run().reason is Reason.COMPLETED
    assert [len(reminders(request)) for request in scene.asked] == [1] + [0] * 9


@pytest.mark.spec("W7")
def test_reminders_can_be_switched_off(rehearse: Rehearse) -> None:
    scene = reminding(rehearse, None, plans("Look"), *looks(20), completes(0), says("Done."))
    assert scene.run().reason is Reason.COMPLETED
    assert reminders(scene.asked[-1]) == []


@pytest.mark.spec("W7", "T15")
def test_a_reminder_is_on_record_as_what_it_is(rehearse: Rehearse) -> None:
    scene = reminding(rehearse, 2, plans("Look"), *looks(4), completes(0), says("Done."))
    outcome = scene.run()
    rows = scene.runtime.conversations.turn_messages(outcome.turn_id)
    assert [row.kind for row in rows].count(REMINDER) == 1
