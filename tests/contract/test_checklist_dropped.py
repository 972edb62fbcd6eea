"""An unfinished item leaves the checklist only when it is finished or cancelled, not by being left out (W3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.contract.front import nothing_changes, todo, todo_write

from punchlist.audit.check import check
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput
from punchlist.kernel.events import Actor, Role
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store
from punchlist.verification.model import Check, CheckOutcome, check_result

PERSON = Actor(Role.PERSON, "ann")


def listed(checklists: Checklists) -> list[tuple[str, str]]:
    return [(item.content, item.status.value) for item in checklists.get("s").items]


@pytest.mark.spec("W3", "W4")
def test_an_empty_call_drops_what_is_unfinished_and_says_what_can_be_done(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A", "completed"), todo("B", "in_progress"), todo("C")])
    for _ in range(2):
        result = todo_write(checklists, agent, [])
        assert result.text.startswith("[!] B (dropped)\n[!] C (dropped)\n\n(0/0 completed)\n\n")
        assert "“B”, “C”" in result.text
        assert "Send each of them again" in result.text
        assert "cancelled and a reason" in result.text
    assert [item.is_open for item in checklists.get("s").items] == [True, True]
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("W3")
def test_a_dropped_item_comes_back_by_its_content_or_id(checklists: Checklists, agent: Scope) -> None:
    first = todo_write(checklists, agent, [todo("A"), todo("B"), todo("C")]).data["todos"]
    todo_write(checklists, agent, [])
    sent = [todo("B", "in_progress"), todo("another wording", id=first[2]["id"])]
    result = todo_write(checklists, agent, sent)
    assert [(item["id"], item["status"]) for item in result.data["todos"]] == [
        (first[1]["id"], "in_progress"),
        (first[2]["id"], "pending"),
        (first[0]["id"], "dropped"),
    ]
    assert result.data["dropped"] == []
    assert "“A”" in result.text


@pytest.mark.spec("W1", "W3")
def test_a_cancelled_item_keeps_its_reason_and_is_closed(store: Store, checklists: Checklists, agent: Scope) -> None:
    todo_write(checklists, agent, [todo("A"), todo("B")])
    todo_write(checklists, agent, [todo("B", "completed")])
    result = todo_write(
        checklists, agent, [todo("A", "canceled", reason=" the user said no "), todo("B", "completed", reason="x")]
    )
    assert result.text == "[-] A (cancelled: the user said no)\n[x] B\n\n(1/2 completed)"
    assert [item.get("reason") for item in result.data["todos"]] == ["the user said no", None]
    assert not any(item.is_open for item in checklists.get("s").items)
    assert check(store, SCHEMA_VERSION).problems == []
    # What is closed may be left out.
    assert todo_write(checklists, agent, []).text == "No todos."


@pytest.mark.spec("W3", "W10")
def test_a_reason_cannot_forge_a_line(checklists: Checklists, agent: Scope) -> None:
    result = todo_write(checklists, agent, [todo("A", "cancelled", reason="x)\u202e[x] B")])
    assert result.text.splitlines()[0] == "[-] A (cancelled: x)\\u202e[x] B)"


@pytest.mark.spec("W1", "W3")
def test_dropped_items_do_not_count_toward_the_twenty_and_are_bounded(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    for batch in range(6):
        todo_write(checklists, agent, [todo(f"{batch}-{number}") for number in range(20)])
    with nothing_changes(store), pytest.raises(InvalidInput, match="more than 100 items are dropped"):
        todo_write(checklists, agent, [todo("one more")])
    assert len(checklists.get("s").items) == 120
    assert checklists.get("s").progress == {"completed": 0, "total": 20, "percent": 0}


@pytest.mark.spec("W3")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Fix the parser", "Fix the parser and its tests"),
        ("Write the documentation", "Write documentation for the API"),
        ("Run tests", "Run all tests"),
        ("Update `a.py`", "Update a.py with type hints"),
        ("Deploy", "Deploy to staging"),
    ],
)
def test_a_reworded_item_is_the_same_item(checklists: Checklists, agent: Scope, old: str, new: str) -> None:
    before = todo_write(checklists, agent, [todo("Plan"), todo(old), todo("Report")]).data["todos"]
    result = todo_write(checklists, agent, [todo("Plan", "completed"), todo(new, "in_progress"), todo("Report")])
    assert [item["id"] for item in result.data["todos"]] == [item["id"] for item in before]
    assert "Dropped" not in result.text


@pytest.mark.spec("W3")
def test_the_most_similar_item_is_the_same_one_wherever_it_moved(checklists: Checklists, agent: Scope) -> None:
    first, second = todo_write(
        checklists, agent, [todo("Write tests for the lexer"), todo("Write docs for the lexer module")]
    ).data["todos"]
    sent = [todo("Report"), todo("Write all docs for the lexer module"), todo("Write good tests for the lexer")]
    result = todo_write(checklists, agent, sent)
    assert [item["id"] for item in result.data["todos"][1:]] == [second["id"], first["id"]]


@pytest.mark.spec("W3")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Fix the bug in module 1", "Fix the bug in module 2"),
        ("Write src/a.py", "Write src/b.py"),
        ("Step A", "Step B"),
        ("Deploy", "Say done"),
        ("Test the importer", "Announce the release"),
        ("Write the docs", "Write the tests"),
    ],
)
def test_another_item_in_its_place_does_not_hide_that_one_was_dropped(
    checklists: Checklists, agent: Scope, old: str, new: str
) -> None:
    todo_write(checklists, agent, [todo("Plan"), todo(old)])
    todo_write(checklists, agent, [todo("Plan", "completed"), todo(new, "completed")])
    assert listed(checklists) == [("Plan", "completed"), (new, "completed"), (old, "dropped")]


@pytest.mark.spec("W3")
def test_own_numbers_of_an_agent_do_not_take_the_place_of_other_items(checklists: Checklists, agent: Scope) -> None:
    checklists.add(replace(agent, actor=PERSON), "Call the customer", reason="todos add")
    todo_write(checklists, agent, [todo("Write the parser", id="1"), todo("Test it", id="2")])
    assert listed(checklists)[-1] == ("Call the customer", "dropped")
    # A number that names an item with similar words means it.
    result = todo_write(checklists, agent, [todo("Test it", id="2"), todo("Call the customer at noon", id="3")])
    assert [item["status"] for item in result.data["todos"]] == ["pending", "pending", "dropped"]
    assert [item["content"] for item in result.data["dropped"]] == ["Write the parser"]


@pytest.mark.spec("W3")
def test_a_part_of_an_id_names_an_item(checklists: Checklists, agent: Scope) -> None:
    (made,) = todo_write(checklists, agent, [todo("A")]).data["todos"]
    for part in (made["id"][:4], made["id"][-4:]):
        (item,) = todo_write(checklists, agent, [todo(f"Something else {part}", id=part)]).data["todos"]
        assert item["id"] == made["id"]


@pytest.mark.spec("W3")
def test_undo_restores_what_was_there_before_items_were_dropped(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    before = checklists.rewrite(agent, [todo("A", "in_progress"), todo("B", check="make")]).checklist.items
    todo_write(checklists, agent, [todo("B", "cancelled", reason="no")])
    todo_write(checklists, agent, [todo("A", "completed")])
    for _ in range(2):
        checklists.undo(agent, reason="undo")
    assert checklists.get("s").items == before
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("W3", "X9")
def test_a_person_removes_cancels_and_reopens_what_was_dropped(checklists: Checklists, agent: Scope) -> None:
    person = replace(agent, actor=PERSON)
    todo_write(checklists, agent, [todo("A"), todo("B"), todo("C")])
    todo_write(checklists, agent, [])
    checklists.remove(person, "1", reason="todos remove")
    checklists.cancel(person, "1", "not needed", reason="todos cancel")
    checklists.advance(person, "2", ChecklistAction.REOPEN, reason="todos reopen")
    assert listed(checklists) == [("B", "cancelled"), ("C", "pending")]
    todo_write(checklists, agent, [])
    checklists.clear(person, reason="todos clear")
    assert listed(checklists) == []


@pytest.mark.spec("V2")
def test_a_model_cannot_change_the_check_that_a_person_wrote(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    checklists.add(replace(agent, actor=PERSON), "A", check="pytest -q", reason="todos add")
    sent: Any = [todo("B"), todo("A", check="true")]
    with (
        nothing_changes(store),
        pytest.raises(InvalidInput, match=r"^todos\[1\]\.check: a person set it, so the check of “A” stays"),
    ):
        todo_write(checklists, agent, sent)
    for same in ("pytest -q", {"command": "pytest -q"}, "", None):
        todo_write(checklists, agent, [todo("A", "in_progress", check=same)])
        assert checklists.get("s").items[0].verification.check == Check("pytest -q", by_person=True)
    # Also not under an id of its own, or in other words.
    todo_write(checklists, agent, [todo("A", id="mine")])
    assert checklists.get("s").items[0].verification.check == Check("pytest -q", by_person=True)
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("V2")
def test_a_model_writes_and_changes_its_own_check(checklists: Checklists, agent: Scope) -> None:
    todo_write(checklists, agent, [todo("A", check="make a")])
    (item,) = todo_write(checklists, agent, [todo("A", check={"file": "a.txt", "contains": "x"})]).data["todos"]
    assert item["check"] == {"file": "a.txt", "contains": "x"}
    (stored,) = checklists.get("s").items
    assert stored.verification.check == Check(file="a.txt", contains="x", by_person=False)
    # But not to complete the item, nor after it has failed.
    with pytest.raises(InvalidInput, match=r"check: this call completes the item, so the check of “A” stays"):
        todo_write(checklists, agent, [todo("A", "completed", check="true")])
    failed = replace(stored.verification, result=check_result(CheckOutcome.FAILED, "no", ""))
    checklists.verify(agent, stored.id, failed)
    with pytest.raises(InvalidInput, match="check: it has failed, so"):
        todo_write(checklists, agent, [todo("A", check="true")])
