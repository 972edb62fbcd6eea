"""What a model is sent: the request and the list always, the beginning as it was, no result lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.contract.rehearsing import Rehearse, calls, completes, every_call_has_one_result, plans, says

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import BUILT_IN
from punchlist.models.model import CallReturn, Message, ModelInfo, ModelRequest, Reply, UserText
from punchlist.models.rehearsal import RehearsedReply

GOAL = "Find the needle."


def looks(many: int, at_once: int = 1, at: int = 0) -> list[RehearsedReply]:
    """Replies that do something different each time, and change no list."""
    return [calls(*(("find_files", {"pattern": f"{at}-{n}-{m}"}) for m in range(at_once))) for n in range(many)]


def state_of(request: ModelRequest) -> str:
    last = request.messages[-1]
    assert isinstance(last, UserText)
    assert last.text.startswith("<state>")
    return last.text


def said(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserText)]


def goes_on_from(before: ModelRequest, after: ModelRequest) -> bool:
    """Whether all but the state at its end is sent again as it was."""
    kept = list(before.messages)
    if any(text.startswith("<state>") for text in said(kept[-1:])):
        kept.pop()
    return (before.system, before.tools, kept) == (after.system, after.tools, list(after.messages[: len(kept)]))


@pytest.mark.spec("T8", "W8", "T13")
@pytest.mark.parametrize(
    ("tools", "delegates", "lists", "sections"),
    [
        (("*",), True, "both", ["Your plan", "Workers", "Checklist"]),
        (("*",), True, "plan", ["Your plan", "Workers"]),
        (("*",), True, "checklist", ["Workers", "Checklist"]),
        (("*",), False, "both", ["Checklist"]),
        (("create_todo",), True, "plan", ["Your plan"]),
        (("delegate", "read_file"), True, "plan", ["Workers"]),
        (("read_file",), True, "both", []),
    ],
)
def test_the_prompt_has_the_sections_of_the_tools_that_there_are(
    rehearse: Rehearse, tools: tuple[str, ...], delegates: bool, lists: str, sections: list[str]
) -> None:
    scene = rehearse(says("Done."))
    scene.agent = replace(scene.agent, tools=tools, delegates=delegates, lists=lists)
    scene.run()
    system = scene.asked[0].system
    assert [name for name in ("Your plan", "Workers", "Checklist") if f"## {name}\n" in system] == sections
    assert ("create_todo" in system) == ("Your plan" in sections)


@pytest.mark.spec("T11")
def test_in_a_long_turn_what_was_sent_is_sent_again_byte_by_byte(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look", "Write"), *looks(32), completes(0), *looks(33)[32:], completes(1), says("Done."))
    scene.agent = replace(scene.agent, compact_after=1_000, remind_after=4)
    assert scene.run(GOAL).reason is Reason.COMPLETED
    assert len(scene.asked[-1].messages) > 60
    assert all(goes_on_from(before, after) for before, after in pairwise(scene.asked))
    for request in scene.asked[1:]:
        assert request.messages[0] == UserText(GOAL)
        assert "Plan: " in state_of(request)


@pytest.mark.spec("T11", "C7")
def test_a_turn_that_is_made_short_keeps_the_request_the_list_the_open_question_and_every_pair(
    rehearse: Rehearse,
) -> None:
    asks = {"title": "Deploy", "blockedBy": [{"person": "Which region?"}]}
    planned = calls(("create_todo", {"items": [{"title": "Look"}, asks]}))
    scene = rehearse(planned, *looks(16, at_once=3), completes(0), says("The rest waits."))
    scene.agent = replace(scene.agent, compact_after=20)
    assert scene.run(GOAL).reason is Reason.WAITING
    for request in scene.asked:
        assert every_call_has_one_result(request.messages)
        assert request.messages[0] == UserText(GOAL)
        assert len(request.messages) <= 20 + 1
    for request in scene.asked[1:]:
        assert "[ ] Deploy" in state_of(request)
        assert "Which region?" in state_of(request)
    shortened = [after for before, after in pairwise(scene.asked) if not goes_on_from(before, after)]
    # Of some seventy messages; it happens rarely, and then by much.
    assert 3 <= len(shortened) <= 6
    assert all(said(request.messages)[1].startswith("Summary of the ") for request in shortened)


@pytest.mark.spec("C7")
@pytest.mark.parametrize(("compact_after", "before", "many"), [(10, 3, 3), (50, 6, 40)])
def test_what_a_model_has_not_read_yet_is_never_made_short(
    rehearse: Rehearse, tmp_path: Path, compact_after: int, before: int, many: int
) -> None:
    texts = [f"{n}: {'long ' * 100}end" for n in range(many)]
    for n, text in enumerate(texts):
        (tmp_path / "workspace" / f"{n}.txt").write_text(text)
    read_all = calls(*(("read_file", {"path": f"{n}.txt"}) for n in range(many)))
    scene = rehearse(*looks(before), read_all, says("Read."))
    scene.agent = replace(scene.agent, compact_after=compact_after)
    assert scene.run(GOAL).reason is Reason.COMPLETED
    results = [message.text for message in scene.asked[-1].messages if isinstance(message, CallReturn)]
    assert [any(text in result for result in results) for text in texts] == [True] * many
    assert every_call_has_one_result(scene.asked[-1].messages)


@pytest.mark.spec("C7")
def test_what_is_made_short_for_the_model_stays_in_the_store(rehearse: Rehearse) -> None:
    scene = rehearse(*looks(8), says("Done."))
    scene.agent = replace(scene.agent, compact_after=10)
    outcome = scene.run(GOAL)
    stored = scene.runtime.conversations.turn_messages(outcome.turn_id)
    replies = [json.loads(row.content) for row in stored if row.kind == "reply"]
    assert sum(len(reply["calls"]) for reply in replies) == 8
    assert sum(row.kind == "result" for row in stored) == 8
    compactions = [row for row in stored if "Summary of" in row.content]
    assert compactions
    assert {(row.role, row.kind) for row in compactions} == {("system", "compaction")}


@pytest.mark.spec("T11")
@pytest.mark.parametrize("history", [0, 4, 10])
def test_of_earlier_turns_only_the_window_is_told_and_of_this_one_all(rehearse: Rehearse, history: int) -> None:
    scene = rehearse(*[says(f"Answer {n}.") for n in range(8)], plans("Look"), *looks(1), completes(0), says("Done."))
    scene.agent = replace(BUILT_IN["supervisor"], history=history, remind_after=None)
    for n in range(8):
        scene.run(f"Question {n}.")
    scene.run(GOAL)
    first, last = scene.asked[8], scene.asked[-1]
    earlier = first.messages[: first.messages.index(UserText(GOAL))]
    assert len(earlier) == history
    if history:
        assert earlier[-2:] == [UserText("Question 7."), earlier[-1]]
        assert f"Question {8 - history // 2}." in said(earlier)
        assert f"Question {7 - history // 2}." not in said(earlier)
    assert UserText(GOAL) in last.messages
    assert "Plan: 1 of 1 items ended." in state_of(last)


@pytest.mark.spec("T11")
def test_earlier_turns_are_told_as_request_and_answer(rehearse: Rehearse, tmp_path: Path) -> None:
    (tmp_path / "workspace" / "a.txt").write_text("SECRET RESULT")
    reads = calls(("read_file", {"path": "a.txt"}), text="I read it.")
    stalls = [plans("Write it"), *[says("Soon.")] * 12]
    scene = rehearse(plans("Look"), reads, says("Not yet."), completes(0), says("It says so."), *stalls)
    scene.agent = replace(scene.agent, limits=replace(scene.agent.limits, max_iterations=40))
    assert scene.run("What does a.txt say?").reason is Reason.COMPLETED
    ended = scene.run("Write it down.")
    assert ended.reason is Reason.STALLED
    before = len(scene.asked)
    scene.run(GOAL)
    earlier = scene.asked[before].messages[: list(scene.asked[before].messages).index(UserText(GOAL))]
    first, answer, second, report = earlier
    assert (first, second) == (UserText("What does a.txt say?"), UserText("Write it down."))
    assert isinstance(answer, Reply)
    assert isinstance(report, Reply)
    assert answer.text.endswith("It says so.")
    assert "[This turn ended as stalled: " in report.text
    assert report.text.count("[This turn ended") == 1
    assert (answer.calls, report.calls) == ((), ())
    everything = " ".join(message.text for message in earlier)
    for left_out in ("SECRET RESULT", "still open", "create_todo", "Not finished:", "reminder"):
        assert left_out not in everything


@pytest.mark.spec("T11")
def test_earlier_turns_take_a_share_of_the_window_and_begin_with_a_request(rehearse: Rehearse) -> None:
    scene = rehearse(*[says(f"Answer {n}. " + "long " * 400) for n in range(8)])
    scene.agent = replace(scene.agent, remind_after=None)
    scene.model.info = ModelInfo(context_window=20_000)
    for n in range(8):
        scene.run(f"Question {n}.")
    messages = scene.asked[-1].messages
    assert messages[0] == UserText("Question 4.") or messages[0] == UserText("Question 3.")
    assert sum(len(message.text) for message in messages) <= 20_000 * 4 * 0.1 + 100
