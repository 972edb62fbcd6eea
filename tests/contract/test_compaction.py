"""Long turns are compacted before the context window is full, and lose nothing that matters (C7)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.contract.rehearsing import (
    Heard,
    Rehearse,
    Rehearsing,
    calls,
    completes,
    every_call_has_one_result,
    plans,
    says,
)
from tests.contract.test_context import looks, said
from tests.contract.test_loop_hostile import WRITE, approve, resume

from punchlist.agent.context import message_length
from punchlist.agent.continuation import Reason
from punchlist.agent.events import ContextCompacted
from punchlist.models.model import CallReturn, ModelInfo, ModelRequest, Reply, TextListener, Usage, UserText
from punchlist.models.rehearsal import RehearsedReply
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode

pytestmark = pytest.mark.spec("C7")
GOAL: Final = "Find out everything about it."
WINDOW: Final = 16_000


class Measured(Heard):
    """Reports the tokens of what it was asked: a token has four characters."""

    info = ModelInfo(context_window=WINDOW)

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        reply = await super().ask(request, on_text)
        return replace(reply, usage=Usage(size(request), 20))


def size(request: ModelRequest) -> int:
    tools = sum(len(f"{tool.name}{tool.description}{tool.input_schema}") for tool in request.tools)
    return (len(request.system) + tools + sum(map(message_length, request.messages))) // 4


def measured(scene: Rehearsing, window: int = WINDOW) -> Rehearsing:
    script = scene.model._script
    scene.model = Measured(script)
    scene.model.info = ModelInfo(context_window=window)
    return scene.limits(base_iterations=500, max_iterations=500)


def notes(folder: Path, many: int, length: int = 0) -> list[RehearsedReply]:
    """Replies that each read a file with a finding of its own."""
    for n in range(many):
        (folder / f"{n}.md").write_text(f"Finding {n} is {n * n + 7}.\n" + "and so on\n" * (length // 10))
    return [calls(("read_file", {"path": f"{n}.md"})) for n in range(many)]


def whole(request: ModelRequest) -> str:
    return "\n".join([*said(request.messages), *(str(message) for message in request.messages)])


def compactions(scene: Rehearsing) -> list[ContextCompacted]:
    return [news for news in scene.news if isinstance(news, ContextCompacted)]


def test_forty_two_findings_are_there_after_three_compactions_and_more(rehearse: Rehearse, tmp_path: Path) -> None:
    reads = notes(tmp_path / "workspace", 42)
    scene = rehearse(plans("Read all"), *reads, completes(0), says("Read.")).limits(
        base_iterations=99, max_iterations=99
    )
    scene.agent = replace(scene.agent, compact_after=20)
    assert scene.run(GOAL).reason is Reason.COMPLETED
    assert len(compactions(scene)) >= 3
    last = whole(scene.asked[-1])
    assert [n for n in range(42) if f"Finding {n} is {n * n + 7}." not in last] == []
    assert [n for n in range(42) if f"read_file {n}.md: " not in last and f"'path': '{n}.md'" not in last] == []
    for request in scene.asked:
        assert request.messages[0] == UserText(GOAL)
        assert every_call_has_one_result(request.messages)


@pytest.mark.spec("T9", "C6")
@pytest.mark.parametrize(("limits", "name"), [({"tokens": 52_500}, "token"), ({"cost": 0.06}, "cost")])
def test_the_model_is_warned_two_calls_before_a_budget_although_its_requests_grow(
    rehearse: Rehearse, tmp_path: Path, limits: Any, name: str
) -> None:
    scene = measured(rehearse(*notes(tmp_path / "workspace", 60, length=4_000)), window=1_000_000)
    scene.model.info = replace(scene.model.info, input_price=1.0, output_price=5.0)
    scene.agent = replace(scene.agent, limits=replace(scene.agent.limits, **limits))
    assert scene.run(GOAL).reason is Reason.BUDGET
    asked = [whole(request) for request in scene.asked if request.tools]
    warned = [n for n, text in enumerate(asked) if f"left before the {name} limit" in text]
    assert (len(asked) > 6, warned) == (True, [len(asked) - 2, len(asked) - 1])
    assert "About 2 model calls are left" in asked[-2]


def test_outcomes_of_ended_items_outlast_compactions(rehearse: Rehearse) -> None:
    ends = [
        calls(
            ("find_files", {"pattern": f"{n}.*"}),
            ("complete_todo", {"todoId": n, "outcome": f"Part {n} has\nthe value {n * n + 7}."}),
        )
        for n in range(1, 29)
    ]
    fails = [calls(("complete_todo", {"todoId": 29, "outcome": "No part 29.", "status": "failed"}))] * 2
    drops = calls(("complete_todo", {"todoId": 30, "outcome": "Not\nneeded.", "status": "cancelled"}))
    titles = [f"Look at part {n}" for n in range(1, 31)]
    scene = rehearse(plans(*titles), *ends, *fails, drops, *[calls(("list_todo", {}))] * 4, says("See above."))
    scene.limits(base_iterations=99, max_iterations=99)
    scene.agent = replace(scene.agent, compact_after=12)
    assert scene.run(GOAL).reason is Reason.COMPLETED
    assert len(compactions(scene)) >= 3
    last = whole(scene.asked[-1])
    assert [n for n in range(1, 29) if f"Look at part {n}: Part {n} has the value {n * n + 7}." not in last] == []
    assert "- Look at part 29 (cancelled): Skipped after two attempts: No part 29." in last
    assert "- Look at part 30 (cancelled): Not needed." in last


def test_a_turn_is_compacted_before_the_window_is_full_and_goes_on_to_its_end(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    reads = notes(tmp_path / "workspace", 60, length=4_000)
    scene = measured(rehearse(plans("Read all"), *reads, completes(0), says("Read.")))
    ended = scene.run(GOAL)
    assert ended.reason is Reason.COMPLETED
    assert max(size(request) for request in scene.asked) < 0.75 * WINDOW
    done = compactions(scene)
    assert 3 <= len(done) <= 20
    for news in done:
        assert news.before_tokens >= 0.7 * WINDOW
        assert news.after_tokens < 0.6 * WINDOW
        assert news.messages > 0
    assert [n for n in range(60) if f"Finding {n} is {n * n + 7}." not in whole(scene.asked[-1])] == []
    assert all(every_call_has_one_result(request.messages) for request in scene.asked)


@pytest.mark.parametrize("tokens", [90_000, 126_000])
def test_what_the_model_reports_counts_not_what_was_guessed(rehearse: Rehearse, tokens: int) -> None:
    before = [replace(line, tokens=20_000) for line in looks(12, at_once=2)]
    late = replace(calls(("find_files", {"pattern": "last"})), tokens=tokens)
    scene = rehearse(*before, late, says("Done.", tokens=1_000)).limits(base_iterations=50)
    scene.model.info = ModelInfo(context_window=128_000)
    assert scene.run(GOAL).reason is Reason.COMPLETED
    (done,) = compactions(scene)
    assert done.before_tokens >= tokens
    assert done.after_tokens < 0.7 * 128_000
    # Before the next request, not after it.
    assert "Summary of the " in whole(scene.asked[-1])
    assert "Summary of the " not in whole(scene.asked[-2])


@pytest.mark.spec("C6", "C7")
def test_an_unknown_window_is_assumed_to_be_small_unless_it_is_set(rehearse: Rehearse, tmp_path: Path) -> None:
    scene = rehearse(*notes(tmp_path / "workspace", 9, length=20_000), says("Read."))
    scene.model.info = ModelInfo()
    assert scene.run(GOAL).reason is Reason.COMPLETED
    assert compactions(scene)
    scene = rehearse(*notes(tmp_path / "workspace", 9, length=20_000), says("Read."))
    scene.model.info = ModelInfo()
    scene.agent = replace(scene.agent, context_window=500_000)
    assert scene.run(GOAL).reason is Reason.COMPLETED
    assert compactions(scene) == []


def test_the_share_of_the_window_is_a_setting(rehearse: Rehearse, tmp_path: Path) -> None:
    reads = notes(tmp_path / "workspace", 12, length=4_000)
    scene = measured(rehearse(*reads, says("Read.")), window=40_000)
    scene.agent = replace(scene.agent, compact_at=0.3)
    assert scene.run(GOAL).reason is Reason.COMPLETED
    assert max(size(request) for request in scene.asked) < 0.4 * 40_000
    assert compactions(scene)


def test_results_that_do_not_fit_are_shortened_for_the_model_and_stored_in_full(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    folder = tmp_path / "workspace"
    (folder / "long.txt").write_text("begin\n" + "x" * 25_000 + "\nend")
    read = ("read_file", {"path": "long.txt"})
    scene = measured(rehearse(calls(read), says("Read.")), window=8_000)
    ended = scene.run(GOAL)
    assert ended.reason is Reason.COMPLETED
    (result,) = [message for message in scene.asked[-1].messages if isinstance(message, CallReturn)]
    assert len(result.text) < 0.25 * 8_000 * 4
    assert "with first_line and lines to read it" in result.text
    stored = scene.runtime.conversations.turn_messages(ended.turn_id)
    assert any("x" * 25_000 in row.content for row in stored)


def test_a_resumed_turn_has_the_same_context(rehearse: Rehearse, store: Store, tmp_path: Path) -> None:
    reads = notes(tmp_path / "workspace", 30)
    scene = rehearse(*reads, calls(WRITE), says("Done.")).limits(base_iterations=99, max_iterations=99)
    scene.agent = replace(scene.agent, compact_after=20)
    scene.in_mode(Mode.DEFAULT)
    assert scene.run(GOAL).reason is Reason.WAITING
    assert len(compactions(scene)) >= 2
    approve(store)
    assert resume(scene).reason is Reason.COMPLETED
    before, after = scene.asked[-2], scene.asked[-1]
    kept = list(before.messages[: before.stable])
    assert after.messages[: len(kept)] == kept
    assert said(kept)[1].startswith("Summary of the ")


def test_a_compaction_is_seen_by_people(rehearse: Rehearse, tmp_path: Path) -> None:
    scene = rehearse(*notes(tmp_path / "workspace", 9), says("Read."))
    scene.agent = replace(scene.agent, compact_after=10)
    ended = scene.run(GOAL)
    rows = scene.runtime.conversations.turn_messages(ended.turn_id)
    kept = [row.content for row in rows if row.kind == "compaction"]
    assert len(kept) == len(compactions(scene))
    assert kept[0].startswith("Context compacted: a summary replaces ")
    assert "Finding 0 is 7." in kept[0]
