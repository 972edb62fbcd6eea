"""Claims of completion: work behind them, checks that pass, and no way around either."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.front import todo
from tests.contract.rehearsing import Rehearse, Rehearsing, calls, claims, completes, plans, says

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import BUILT_IN
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import CallReturn, ModelRequest, UserText


def planned(**item: Any) -> Any:
    return calls(("create_todo", {"items": [{"title": "Write it", **item}]}))


def state(request: ModelRequest) -> str:
    last = request.messages[-1]
    assert isinstance(last, UserText)
    return last.text


def results(scene: Rehearsing) -> list[CallReturn]:
    return [message for message in scene.asked[-1].messages if isinstance(message, CallReturn)]


@pytest.mark.spec("V1")
def test_a_claim_without_work_is_questioned_once(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look", "Write"), calls(claims(0)), calls(claims(0)), completes(1), says("Done."))
    assert scene.run().reason is Reason.COMPLETED
    _, questioned, kept, *_, worked = results(scene)
    assert questioned.failed
    assert "no tool call has succeeded for “Look”" in questioned.text
    assert [kept.failed, worked.failed] == [False, False]


@pytest.mark.spec("V1", "V2")
def test_a_check_that_passes_is_no_work(rehearse: Rehearse) -> None:
    scene = rehearse(planned(check="true"), calls(claims(0)), calls(claims(0)), says("Done."))
    ended = scene.run()
    assert ended.reason is Reason.COMPLETED
    _, questioned, kept = results(scene)
    assert "no tool call has succeeded for “Write it”" in questioned.text
    assert '"mark":"checked"' in kept.text


@pytest.mark.spec("V1", "V2", "W3")
def test_items_that_are_added_as_completed_are_claims(rehearse: Rehearse) -> None:
    def writes(check: str) -> tuple[str, Any]:
        items = [todo("A", "completed"), todo("B", "completed", check=check)]
        return "TodoWrite", {"todos": items}

    lines = [calls(writes("false")), calls(("list_directory", {}), writes("false"))]
    cancelled = [todo("A", "completed"), todo("B", "cancelled", reason="no")]
    again = [calls(("TodoWrite", {"todos": cancelled})), calls(writes("false")), says("Done.")]
    scene = rehearse(coder=[*lines, *again])
    scene.agent = BUILT_IN["coder"]
    ended = scene.run()
    assert (ended.reason, [item.title for item in ended.open]) == (Reason.STALLED, ["B"])
    told = [m.text for m in scene.model.requests["coder"][4].messages if isinstance(m, CallReturn)]
    assert "[ ] A" in told[0]
    assert "no tool call has succeeded for “A”, “B”" in told[0]
    assert "Its check failed: “false”" in told[2]
    # Nor is an item that was cancelled completed without its check.
    assert "[-] B" in told[3]
    assert "[ ] B" in told[4]
    assert "Its check failed: “false”" in told[4]


@pytest.mark.spec("V1", "T12")
def test_a_worker_that_did_nothing_is_no_evidence(rehearse: Rehearse) -> None:
    mission = {"type": "coder", "mission": "Look.", "todoId": "1"}
    claim = ("complete_todo", {"todoId": "1", "outcome": "done"})
    lines = [plans("Look"), calls(("delegate", mission)), calls(claim), calls(("delegate", mission)), calls(claim)]
    worker = [says("I did it."), calls(("list_directory", {})), says("I have looked.")]
    scene = rehearse(*lines, says("Done."), coder=worker)
    assert scene.run().reason is Reason.COMPLETED
    _, idle, questioned, worked, kept = results(scene)
    assert [idle.failed, questioned.failed, worked.failed, kept.failed] == [False, True, False, False]
    assert "no tool call has succeeded for “Look”" in questioned.text


@pytest.mark.spec("V2")
def test_the_file_of_a_check_must_not_be_empty(rehearse: Rehearse) -> None:
    empty, full = (("write_file", {"path": "out.txt", "content": content}) for content in (" \n", "x"))
    scene = rehearse(planned(check={"file": "out.txt"}), calls(empty, claims(0)), calls(full, claims(0)), says("Done."))
    assert scene.run().reason is Reason.COMPLETED
    refused = next(result for result in results(scene) if result.failed)
    assert "out.txt is empty." in refused.text


@pytest.mark.spec("V1")
def test_a_claim_in_the_reply_of_a_failed_call_is_refused(rehearse: Rehearse) -> None:
    fails = calls(("read_file", {"path": "missing"}), claims(0))
    scene = rehearse(plans("Look"), fails, completes(0), says("Done."))
    assert scene.run().reason is Reason.COMPLETED
    _, read, refused, *_ = results(scene)
    assert [read.failed, refused.failed] == [True, True]
    assert "read_file failed in the same reply" in refused.text


@pytest.mark.spec("V2")
@pytest.mark.parametrize(
    "check", [{"command": "test -f out.txt"}, "test -f out.txt", {"file": "out.txt", "contains": "x"}]
)
def test_an_item_stays_open_until_its_check_passes(rehearse: Rehearse, tmp_path: Path, check: Any) -> None:
    writes = calls(("write_file", {"path": "out.txt", "content": "x"}), claims(0))
    scene = rehearse(planned(check=check), completes(0), writes, says("Done."))
    ended = scene.run()
    assert (ended.reason, ended.open) == (Reason.COMPLETED, ())
    _, _, refused, _, kept = results(scene)
    assert refused.failed
    assert "“Write it” stays open. Its check failed" in refused.text
    assert not kept.failed
    assert (tmp_path / "workspace" / "out.txt").read_text() == "x"


@pytest.mark.spec("V2", "T11")
def test_the_state_shows_the_check_of_the_current_item_and_why_it_failed(rehearse: Rehearse) -> None:
    items = [{"title": "Write it", "check": "echo no;\nfalse"}, {"title": "Test it", "check": "pytest -q"}]
    scene = rehearse(calls(("create_todo", {"items": items})), completes(0), says("Done!"))
    scene.run()
    _, before, after = scene.asked[:3]
    assert "1. [ ] Write it\n    check: echo no; false\n2. [ ] Test it\n</state>" in state(before)
    assert "check: echo no; false\n    its check failed: The command ended with exit code 1. no" in state(after)
    listed = rehearse(says("Done!"))
    person = Scope("s", Actor(Role.PERSON, "ann"))
    listed.runtime.checklists.add(person, "Test it", check="pytest -q", reason="todos add")
    listed.run()
    assert "The next item has a check: pytest -q" in state(listed.asked[0])


@pytest.mark.spec("C8", "T11")
def test_the_second_attempt_is_told_why_the_first_one_failed(rehearse: Rehearse) -> None:
    """Also the attempt in a fresh context, which has not seen the first one."""
    fails = calls(("complete_todo", {"todoId": 1, "outcome": "The disk\nis full.", "status": "failed"}))
    checked = [calls(("list_directory", {}), claims(0)), says("Hm.")]
    cannot = calls(("cannot_do_item", {"reason": "no"}))
    scene = rehearse(planned(check="echo no; false"), fails, *checked, *[says("Soon.")] * 4, cannot)
    assert scene.run().reason is Reason.STALLED
    failed = "it failed: The disk is full."
    assert f"1. [ ] Write it\n    check: echo no; false\n    {failed}\n</state>" in state(scene.asked[2])
    fresh = str(scene.asked[-1].messages[0].text)
    assert f"- {failed}\n- its check failed: The command ended with exit code 1. no" in fresh


@pytest.mark.spec("V2", "C5")
def test_a_check_that_fails_again_and_again_is_no_progress(rehearse: Rehearse) -> None:
    def writes(status: str) -> Any:
        return calls(("TodoWrite", {"todos": [todo("A", status, check="date +%s%N; false")]}))

    scene = rehearse(coder=[writes("pending"), says("Hm."), *[writes("completed"), says("Done!")] * 9])
    scene.agent = replace(BUILT_IN["coder"], history=0)
    ended = scene.run()
    assert (ended.reason, ended.continuations) == (Reason.STALLED, 3)


@pytest.mark.spec("V2", "C13")
def test_a_turn_whose_check_never_passes_is_not_completed(rehearse: Rehearse) -> None:
    scene = rehearse(planned(check={"command": "false"}), *[completes(0), says("Done!")] * 9)
    ended = scene.run()
    assert ended.reason in (Reason.STALLED, Reason.CAPPED)
    assert [item.title for item in ended.open] == ["Write it"]


@pytest.mark.spec("V2", "S4")
def test_a_model_cannot_call_the_tool_of_peoples_checks(rehearse: Rehearse, tmp_path: Path) -> None:
    scene = rehearse(calls(("run_check", {"command": "touch made"})), says("Done."))
    scene.run()
    assert "run_check" not in {tool.name for tool in scene.asked[0].tools}
    (refused,) = results(scene)
    assert refused.failed
    assert not (tmp_path / "workspace" / "made").exists()
