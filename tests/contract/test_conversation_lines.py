"""Each change of the checklist is also a line in the conversation (W9)."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import todo

from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations


@pytest.mark.spec("W9")
def test_every_change_leaves_its_line(
    checklists: Checklists, conversations: Conversations, agent: Scope, clock: StoppedClock
) -> None:
    def next_line() -> str:
        clock.advance(seconds=1)
        return conversations.messages("s")[-1].content

    checklists.rewrite(agent, [todo("A", "completed"), todo("B", "in_progress"), todo("C")])
    assert next_line() == "Todo list updated:\n  ✓ A\n  ▶ Doing B\n  ○ C"
    checklists.advance(agent, "2", ChecklistAction.COMPLETE, reason="test")
    assert next_line() == "Todo list updated:\n  ✓ A\n  ✓ B\n  ○ C"
    checklists.remove(agent, "1", reason="test")
    assert next_line() == "Todo list updated:\n  ✓ B\n  ○ C"
    checklists.undo(agent, reason="test")
    assert next_line() == "Todo list updated:\n  ✓ A\n  ✓ B\n  ○ C"
    assert {(line.role, line.kind) for line in conversations.messages("s")} == {("system", "todo_update")}


@pytest.mark.spec("W9")
def test_a_change_that_changes_nothing_leaves_no_line(
    checklists: Checklists, conversations: Conversations, agent: Scope
) -> None:
    for _ in range(2):
        checklists.rewrite(agent, [todo("A")])
    assert len(conversations.messages("s")) == 1


@pytest.mark.spec("W9", "T15")
def test_the_line_belongs_to_the_open_turn(
    checklists: Checklists, conversations: Conversations, turn: TurnScope
) -> None:
    checklists.rewrite(turn, [todo("A")])
    conversations.end_turn(turn, reason="test")
    checklists.rewrite(turn, [todo("A", "completed"), todo("B")])
    assert {line.turn_id: line.content.split()[-1] for line in conversations.messages("s")} == {
        turn.turn_id: "A",
        None: "B",
    }
