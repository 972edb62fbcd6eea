"""The answer of a turn is the text that answers the request, and a limit leaves a report behind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contract.rehearsing import Rehearse, calls, claims, completes, plans, says

from punchlist.agent.answer import AnswerText
from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import BUILT_IN
from punchlist.models.model import Reply, RequestedCall, UserText

REPORT = "The import is slow because every row is its own transaction. Batches of 500 make it ten times faster."


@pytest.mark.spec("C13")
def test_a_report_written_before_the_last_mark_is_part_of_the_answer(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look"), calls(("list_directory", {})), says(REPORT), calls(claims(0)), says("Done."))
    ended = scene.run()
    assert (ended.reason, ended.text) == (Reason.COMPLETED, f"{REPORT}\n\nDone.")


@pytest.mark.spec("C13")
@pytest.mark.parametrize("work", [("write_file", {"path": "x", "content": "x"}), ("run_command", {"command": "true"})])
def test_work_after_an_early_text_makes_it_outdated(rehearse: Rehearse, work: tuple[str, Any]) -> None:
    scene = rehearse(plans("Look"), says("Nothing is written so far."), calls(work, claims(0)), says("Written."))
    assert scene.run().text == "Written."


@pytest.mark.spec("C13", "V1")
def test_a_report_outlasts_the_question_about_an_item_that_was_left_unmarked(rehearse: Rehearse) -> None:
    marks, looks = calls(claims(1)), calls(("list_directory", {}), claims(1))
    scene = rehearse(plans("A", "B"), completes(0), says(REPORT), marks, looks, says("Done."))
    ended = scene.run()
    assert "no tool call has succeeded for “B”" in str(scene.asked[4].messages)
    assert (ended.reason, ended.text) == (Reason.COMPLETED, f"{REPORT}\n\nDone.")


@pytest.mark.spec("C13")
def test_a_model_that_leaves_its_answer_empty_is_asked_for_it(rehearse: Rehearse) -> None:
    assert rehearse(says(""), says("Done.")).run().text == "Done."
    # A call that is written as text is not run, so it is no answer either.
    call = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
    for no_answer in ("", call, f"```json\n{call}\n```", f"<tool_call>{call}</tool_call>"):
        ended = rehearse(*[says(no_answer)] * 9).run()
        assert (ended.reason, ended.iterations, ended.last_text) == (Reason.ERROR, 3, "")
    other = call.replace("read_file", "Ann")
    assert rehearse(says(other)).run().text == other
    # An announcement answers nothing.
    lines = [plans("Look"), says("I'll look now."), completes(0), says(""), says("Done.")]
    assert rehearse(*lines).run().text == "Done."
    # The texts before are the answer, if the model adds nothing to them.
    ended = rehearse(plans("Look"), says(REPORT), completes(0), *[says("")] * 3).run()
    assert ended.reason is Reason.COMPLETED


def reply(text: str, *tools: str) -> Reply:
    return Reply(text, tuple(RequestedCall(str(number), tool, {}) for number, tool in enumerate(tools)))


@pytest.mark.spec("C13")
@pytest.mark.parametrize(
    ("replies", "answer"),
    [
        ([reply(REPORT), reply("", "complete_todo"), reply("Done.")], f"{REPORT}\n\nDone."),
        ([reply(REPORT, "complete_todo"), reply("Done.")], f"{REPORT}\n\nDone."),
        ([reply(REPORT, "create_todo"), reply("Done.")], "Done."),
        ([reply("Marking it as done.", "complete_todo"), reply("All ends well.")], "All ends well."),
        ([reply(REPORT * 3, "complete_todo"), reply("Done.")], f"{REPORT * 3}\n\nDone."),
        ([reply("I'll continue with the rest."), reply("Done.")], "Done."),
        ([reply(REPORT), reply(f"{REPORT}\n\nAll items are marked.")], f"{REPORT}\n\nAll items are marked."),
        ([reply("Reading.", "read_file")], "Reading."),
        ([reply(REPORT), reply("", "read_file", "complete_todo"), reply("Done.")], f"{REPORT}\n\nDone."),
        ([reply(REPORT), reply("", "edit_file"), reply("Done.")], "Done."),
    ],
    ids=[
        "list calls between",
        "short beside a claim",
        "short beside a plan",
        "remark beside a claim",
        "long beside a call",
        "announcement",
        "repeated",
        "only calls",
        "reading between",
        "writing between",
    ],
)
def test_which_texts_are_the_answer(replies: list[Reply], answer: str) -> None:
    text = AnswerText()
    for each in replies:
        text.add(each)
    assert text.text == answer


@pytest.mark.spec("C13")
@pytest.mark.parametrize("beside", [(), ("complete_todo",)], ids=["alone", "beside a claim"])
@pytest.mark.parametrize(
    "text",
    [
        "Let me summarise: 3 bugs found in x.py and they are all in the parser.",
        "I'll put it plainly: the cause is the missing index on orders.user_id.",
        "Let me be clear: no, the port is 8913.",
        "I will not do that, because the key is private.",
        "Next to nothing changed: only line 4.",
        "I'll keep it short: 7 files, 2 bugs.",
        "I’ll answer with a number — 42.",
        "Let me know if you want the other half too.",
        "I will look no further: it is the index.",
        "Let me start with the result, which is 17.",
        "Next release: 2.4.",
        "I'll check nothing else. The port is 8913.",
    ],
)
def test_a_short_answer_is_no_announcement(text: str, beside: tuple[str, ...]) -> None:
    answer = AnswerText()
    for each in (reply(text, *beside), reply("", "complete_todo"), reply("Done.")):
        answer.add(each)
    assert answer.text == f"{text}\n\nDone."


@pytest.mark.spec("C13")
@pytest.mark.parametrize(
    "text", ["I'll look at the parser first.", "Let me check x.py now", "Okay, I will continue with item 3:"]
)
def test_an_announcement_is_no_answer(text: str) -> None:
    answer = AnswerText()
    answer.add(reply(text))
    assert answer.is_empty
    answer.add(reply("Done."))
    assert answer.text == "Done."


@pytest.mark.spec("T9")
def test_the_model_is_warned_before_the_limit_and_reports_at_it_without_tools(rehearse: Rehearse) -> None:
    reads: Any = [calls(("read_file", {"path": f"{number}.txt"})) for number in range(5)]
    scene = rehearse(*reads, says("I have read five files; nothing is decided.")).limits(
        base_iterations=5, max_iterations=5
    )
    ended = scene.run()
    assert (ended.reason, ended.iterations) == (Reason.CAPPED, 5)
    assert ended.text.startswith("I have read five files")
    warned = [number for number, request in enumerate(scene.asked) if "left before the limit" in str(request.messages)]
    assert warned == [3, 4]
    last = scene.asked[-1]
    assert (len(scene.asked), list(last.tools)) == (6, [])
    assert isinstance(last.messages[-1], UserText)
    assert "You have no tools any more" in last.messages[-1].text
    assert not any(isinstance(message, Reply) and message.calls for message in last.messages)


@pytest.mark.spec("T9", "T11")
def test_the_report_at_a_limit_is_written_with_the_list_in_view(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look", "Write"), completes(0), says("Look is done.")).limits(
        base_iterations=2, max_iterations=2
    )
    assert scene.run().reason is Reason.CAPPED
    asked, state = scene.asked[-1].messages[-2:]
    assert "You have no tools any more" in asked.text
    assert state.text == "<state>\nPlan: 1 of 2 items ended.\n2. [ ] Write\n</state>"


@pytest.mark.spec("T9", "T13")
@pytest.mark.parametrize("name", ["supervisor", "coder"])
def test_the_fixed_part_of_a_request_is_small(rehearse: Rehearse, name: str) -> None:
    scene = rehearse(says("Hello."))
    scene.agent = BUILT_IN[name]
    scene.run()
    request = scene.asked[0]
    tools = [
        json.dumps({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
        for tool in request.tools
    ]
    assert len(request.system + "".join(tools)) / 4 <= 1_600
