"""What a person changes, item by item."""

from __future__ import annotations

import pytest
from tests.contract.front import nothing_changes, todo

from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition
from punchlist.storage.store import Store


def shown(checklists: Checklists) -> list[str]:
    return [f"{item.status} {item.content}" for item in checklists.get("s").items]


def test_an_item_is_added_at_the_end_and_runs_under_its_own_name(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A", "in_progress")])
    added = checklists.add(agent, " B ", reason="test").checklist.items[-1]
    named = checklists.add(agent, "C", active_form="Seeing to C", reason="test").checklist.items[-1]
    assert (added.content, added.active_form) == ("B", "B")
    assert (named.content, named.active_form) == ("C", "Seeing to C")
    assert shown(checklists) == ["in_progress A", "pending B", "pending C"]


def test_the_same_text_can_be_added_twice(checklists: Checklists, agent: Scope) -> None:
    checklists.add(agent, "A", reason="test")
    first, second = checklists.add(agent, "A", reason="test").checklist.items
    assert first.id != second.id


def test_an_item_goes_there_and_back_again(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A"), todo("B")])
    seen = []
    for action in (
        ChecklistAction.START,
        ChecklistAction.COMPLETE,
        ChecklistAction.REOPEN,
        ChecklistAction.COMPLETE,
        ChecklistAction.START,
        ChecklistAction.REOPEN,
    ):
        seen.append(checklists.advance(agent, "2", action, reason="test").checklist.items[1].status.value)
    assert seen == ["in_progress", "completed", "pending", "completed", "in_progress", "pending"]


def test_a_step_that_the_table_does_not_have_changes_nothing(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    for status, action in (
        ("pending", ChecklistAction.REOPEN),
        ("in_progress", ChecklistAction.START),
        ("completed", ChecklistAction.COMPLETE),
        ("pending", ChecklistAction.ADD),
    ):
        checklists.rewrite(agent, [todo("A", status)])
        with nothing_changes(store), pytest.raises(IllegalTransition):
            checklists.advance(agent, "1", action, reason="test")


def test_an_edited_item_keeps_its_id_and_state(checklists: Checklists, agent: Scope) -> None:
    (before,) = checklists.rewrite(agent, [todo("A", "in_progress")]).checklist.items
    (after,) = checklists.edit(agent, before.id, "B", reason="test").checklist.items
    assert (after.id, after.status, after.content, after.active_form) == (before.id, before.status, "B", "B")


def test_only_the_item_that_was_meant_is_changed(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A"), todo("A"), todo("A")])
    checklists.advance(agent, "2", ChecklistAction.COMPLETE, reason="test")
    checklists.remove(agent, "1", reason="test")
    assert shown(checklists) == ["completed A", "pending A"]


@pytest.mark.spec("W3")
def test_removing_and_clearing_tell_what_was_unfinished(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A"), todo("B", "completed"), todo("C")])
    assert [item.content for item in checklists.remove(agent, "1", reason="test").dropped] == ["A"]
    assert [item.content for item in checklists.clear(agent, reason="test").dropped] == ["C"]
    assert shown(checklists) == []
