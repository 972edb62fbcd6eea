"""A bad TodoWrite call names the item and the rule, and changes nothing (W1, W2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.front import everything, nothing_changes, todo, todo_write

from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition, InvalidInput, NotFound
from punchlist.storage.store import Store

BAD: dict[str, tuple[Any, str]] = {
    "no list": (None, "todos: must be an array of items, got null"),
    "an object": ({"0": todo()}, "todos: must be an array of items, got an object"),
    "21 items": ([todo()] * 21, "todos: at most 20 items are allowed, got 21"),
    "a text for an item": (["A"], "todos[0]: must be an object"),
    "no content": ([todo(), {"status": "pending", "activeForm": "x"}], "todos[1].content: is required"),
    "no activeForm": ([{"status": "pending", "content": "x"}], "todos[0].activeForm: is required"),
    "blank content": ([todo(content="  ")], "todos[0].content: must be 1 to 500 characters"),
    "long content": ([todo(), todo(content="x" * 501)], "todos[1].content: must be 1 to 500 characters"),
    "long activeForm": ([todo(activeForm="x" * 501)], "todos[0].activeForm: must be 1 to 500 characters"),
    "a number for content": ([todo(content=1)], "todos[0].content: must be text, got a number"),
    "an unknown status": (
        [todo(status="abandoned")],
        "todos[0].status: must be one of pending, in_progress, completed, cancelled, got",
    ),
    "a status that follows": ([todo(status="dropped")], "todos[0].status: must be one of"),
    "cancelled without a reason": ([todo(), todo(status="cancelled")], "todos[1].reason: is required for a cancelled"),
    "an empty reason": ([todo(status="cancelled", reason=" ")], "todos[0].reason: must be 1 to 500 characters"),
    "a long reason": ([todo(status="cancelled", reason="x" * 501)], "todos[0].reason: must be 1 to 500 characters"),
    "a reason on two lines": ([todo(status="cancelled", reason="a\nb")], "todos[0].reason: must not contain a line"),
    "a number for a reason": ([todo(status="cancelled", reason=1)], "todos[0].reason: must be text"),
    "a bad check": ([todo(), todo(check={"file": ""})], "todos[1].check.file: must be 1 to"),
    "two checks": ([todo(check={"file": "a", "command": "b"})], "todos[0].check: needs exactly one of"),
    "no status": ([{"content": "x", "activeForm": "x"}], "todos[0].status: must be one of"),
    "a line break": ([todo(content="A\n[x] B")], "todos[0].content: must not contain a line break"),
    "an escape": ([todo(), todo(), todo(activeForm="\x1b[2J")], "todos[2].activeForm: must not contain control"),
    "NUL": ([todo(content="a\x00b")], "todos[0].content: must not contain control characters (U+0000)"),
    "half a surrogate pair": ([todo(content="\ud800")], "todos[0].content: must not contain half of a surrogate pair"),
    "one id twice": ([todo(id="a"), todo(id="a")], "todos[1].id: 'a' is the id of todos[0] too"),
    "a bad id": ([todo(id=[])], "todos[0].id: must be text, got an array"),
}

ONE_AT_A_TIME = r"^Only one task can be in_progress at a time"


@pytest.mark.spec("W1")
def test_every_bad_call_is_refused_by_item_and_rule_and_changes_nothing(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    checklists.rewrite(agent, [todo("A", "completed"), todo("B", "in_progress"), todo("C")])
    wrong = {}
    before = everything(store)
    for name, (todos, problem) in BAD.items():
        with pytest.raises(InvalidInput) as refused:
            todo_write(checklists, agent, todos)
        if not str(refused.value).startswith(problem):
            wrong[name] = str(refused.value)
        if everything(store) != before:
            wrong[name] = "changed something"
    assert wrong == {}


@pytest.mark.spec("W1")
def test_one_bad_item_spoils_the_whole_call(store: Store, checklists: Checklists, agent: Scope) -> None:
    with nothing_changes(store), pytest.raises(InvalidInput):
        todo_write(checklists, agent, [todo("good"), todo("bad", "unheard of")])
    assert checklists.get("s").items == ()


@pytest.mark.spec("W2")
def test_a_second_item_in_progress_is_refused_in_the_promised_words(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    checklists.rewrite(agent, [todo("A", "in_progress"), todo("B")])
    with nothing_changes(store), pytest.raises(InvalidInput, match=ONE_AT_A_TIME):
        todo_write(checklists, agent, [todo("A", "in_progress"), todo("B", "in_progress")])
    with nothing_changes(store), pytest.raises(IllegalTransition, match=ONE_AT_A_TIME):
        checklists.advance(agent, "2", ChecklistAction.START, reason="test")


@pytest.mark.spec("W1")
def test_the_twenty_first_item_cannot_be_added_one_by_one_either(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    checklists.rewrite(agent, [todo(f"item {number}") for number in range(20)])
    with nothing_changes(store), pytest.raises(InvalidInput, match="at most 20 items are allowed, got 21"):
        checklists.add(agent, "one more", reason="test")


@pytest.mark.spec("W1")
def test_people_are_held_to_the_same_rules(store: Store, checklists: Checklists, agent: Scope) -> None:
    checklists.add(agent, "A", reason="test")
    for content in ("", "x" * 501, "a\nb", "\x1b]52;c;x\x07"):
        with nothing_changes(store), pytest.raises(InvalidInput, match=r"\.content: must "):
            checklists.add(agent, content, reason="test")
        with nothing_changes(store), pytest.raises(InvalidInput, match=r"\.content: must "):
            checklists.edit(agent, "1", content, reason="test")
        with nothing_changes(store), pytest.raises(InvalidInput, match=r"\.activeForm: must "):
            checklists.edit(agent, "1", "B", active_form=content or " ", reason="test")


def test_an_item_that_is_not_there_cannot_be_changed(store: Store, checklists: Checklists, agent: Scope) -> None:
    checklists.add(agent, "A", reason="test")
    with nothing_changes(store):
        with pytest.raises(NotFound):
            checklists.advance(agent, "2", ChecklistAction.START, reason="test")
        with pytest.raises(NotFound):
            checklists.edit(agent, "zzz", "B", reason="test")
        with pytest.raises(NotFound):
            checklists.remove(agent, "0", reason="test")
