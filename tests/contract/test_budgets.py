"""Budgets are for a turn and its workers; a list that was there before keeps no turn going."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.contract.rehearsing import Rehearsing, calls, completes, plans, says

from punchlist.agent.continuation import Reason
from punchlist.agent.events import CallChanged
from punchlist.agent.resume import restore
from punchlist.agent.transcript import from_stored, to_stored
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Message as StoredMessage
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import ConfigError
from punchlist.models.model import CallReturn, ModelInfo, Reply, Usage
from punchlist.models.rehearsal import RehearsedReply
from punchlist.storage.store import Store
from punchlist.toolcalls.lifecycle import CallStatus

DELEGATE = calls(("delegate", {"type": "writer", "mission": "Write it."}))


@pytest.fixture
def rehearse(store: Store, agent: Scope, tmp_path: Path) -> Any:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return lambda *replies, **agents: Rehearsing(store, agent, folder, *replies, **agents)


@pytest.mark.spec("C6")
def test_what_workers_use_is_used_by_the_turn(rehearse: Any) -> None:
    scene = rehearse(DELEGATE, DELEGATE, says("Done."), writer=[says("Written.", tokens=70_000)])
    ended = scene.limits(tokens=75_000).run()
    assert (ended.reason, ended.iterations, ended.usage.total) == (Reason.BUDGET, 1, 70_002)


@pytest.mark.spec("C6")
def test_a_worker_gets_no_more_than_is_left(rehearse: Any) -> None:
    looks = [calls(("list_directory", {"path": f"{n}"})) for n in range(9)]
    worker = [type(line)(calls=line.calls, tokens=4_000) for line in looks]
    scene = rehearse(DELEGATE, says("Done."), writer=worker).limits(tokens=20_000)
    ended = scene.run()
    assert ended.usage.total <= 20_000
    (report,) = [message for message in scene.asked[-1].messages if isinstance(message, CallReturn)]
    assert "Ended as budget" in report.text


@pytest.mark.spec("C6")
def test_dollars_are_counted_for_both(rehearse: Any) -> None:
    scene = rehearse(DELEGATE, DELEGATE, says("Done."), writer=[says("Written.", tokens=1_000_000)])
    scene.model.info = ModelInfo(1_000_000_000, 1.0, 2.0)
    made = scene.model.for_agent
    scene.model.for_agent = lambda name: _priced(made(name))
    assert scene.limits(cost=1.5).run().reason is Reason.BUDGET


def _priced(model: Any) -> Any:
    model.info = ModelInfo(1_000_000_000, 1.0, 2.0)
    return model


@pytest.mark.spec("T11", "C6")
def test_cached_tokens_are_summed_stored_and_cheaper(rehearse: Any) -> None:
    def asks(cached: int) -> RehearsedReply:
        return RehearsedReply(calls=(("list_directory", {}),), tokens=1_000_000, cached_tokens=cached)

    scene = rehearse(asks(0), asks(900_000), asks(950_000), says("Done.", tokens=1_000_000, cached_tokens=990_000))
    scene.model.info = ModelInfo(1_000_000_000, 1.0, 2.0, 0.1)
    ended = scene.limits(cost=3.2).run()
    assert ended.reason is Reason.COMPLETED
    assert ended.usage == Usage(4_000_000, 1, 2_840_000)
    stored = restore(scene.runtime.conversations.turn_messages(ended.turn_id))
    assert stored.usage == ended.usage


@pytest.mark.spec("T11")
def test_replies_stored_without_cached_tokens_are_still_read(rehearse: Any) -> None:
    row = to_stored(Reply("Done.", usage=Usage(10, 2, 7)))
    content = {**json.loads(row.content), "usage": [10, 2]}
    stored = StoredMessage("m", "s", "t", 1, row.role, row.kind, json.dumps(content), "2026-01-01T00:00:00Z")
    assert from_stored(stored) == Reply("Done.", usage=Usage(10, 2))


@pytest.mark.spec("C6")
def test_a_limit_of_cost_needs_a_price(rehearse: Any) -> None:
    scene = rehearse(says("Done.")).limits(cost=1.0)
    with pytest.raises(ConfigError, match="price of rehearsal is unknown"):
        scene.run()
    assert scene.runtime.conversations.turns("s") == []


@pytest.mark.spec("C2", "C13")
def test_a_checklist_that_was_there_before_keeps_the_turn_going(rehearse: Any, store: Store, agent: Scope) -> None:
    left = [{"content": "Fix the parser", "activeForm": "Fixing the parser", "status": "pending"}]
    Checklists(store, Conversations(store)).rewrite(agent, left)
    stalled = rehearse(*[says("Hello.")] * 9).run()
    assert (stalled.reason, [item.title for item in stalled.open]) == (Reason.STALLED, ["Fix the parser"])
    done = calls(("list_directory", {}), ("TodoWrite", {"todos": [{**left[0], "status": "completed"}]}))
    scene = rehearse(says("Hello."), done, says("Fixed."))
    finished = scene.run()
    assert (finished.reason, finished.continuations, finished.open) == (Reason.COMPLETED, 1, ())
    # An agent that plans has no checklist otherwise.
    assert "TodoWrite" in {tool.name for tool in scene.asked[0].tools}
    assert "Fix the parser" in str(scene.asked[0].messages[-1])
    next_turn = rehearse(says("Hello."))
    assert next_turn.run().reason is Reason.COMPLETED
    assert "TodoWrite" not in {tool.name for tool in next_turn.asked[0].tools}


@pytest.mark.spec("T13")
def test_a_worker_does_not_write_over_its_supervisors_checklist(rehearse: Any) -> None:
    scene = rehearse(DELEGATE, says("Done."), writer=[says("Written.")])
    scene.run()
    offered = {tool.name for tool in scene.model.requests["writer"][0].tools}
    assert offered >= {"read_file", "write_file"}
    assert not offered & {
        "TodoWrite",
        "create_todo",
        "list_todo",
        "start_todo",
        "complete_todo",
        "wait_todo",
        "delegate",
    }


@pytest.mark.spec("T5", "T12")
def test_two_delegations_at_once_are_both_worked_on(rehearse: Any) -> None:
    both = [
        ("delegate", {"type": "writer", "mission": f"Part {n}.", "todoId": f"{{{{ created[{n}].id }}}}"})
        for n in (0, 1)
    ]
    scene = rehearse(
        plans("One", "Two"), calls(*both), completes(0), completes(1), says("Done."), writer=[says("Written.")]
    )
    assert scene.run().reason is Reason.COMPLETED
    ended = [one.call for one in scene.news if isinstance(one, CallChanged) and one.call.request.tool == "delegate"]
    assert [call.status for call in ended].count(CallStatus.SUCCESS) == 2
