"""A call replaces the whole list; items keep their ids, and what is left out is told (W1, W3, W4, W11)."""

from __future__ import annotations

import pytest
from tests.contract.front import everything, todo, todo_write

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.storage.store import Store


def ids(checklists: Checklists) -> dict[str, str]:
    return {item.content: item.id for item in checklists.get("s").items}


@pytest.mark.spec("W3")
def test_a_call_replaces_the_whole_list(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A"), todo("B")])
    checklists.rewrite(agent, [todo("C"), todo("A", "in_progress")])
    assert [(item.content, item.status.value) for item in checklists.get("s").items] == [
        ("C", "pending"),
        ("A", "in_progress"),
        ("B", "dropped"),
    ]


@pytest.mark.spec("W1", "W3", "W4")
def test_the_tool_returns_the_list_as_text_and_as_data(checklists: Checklists, agent: Scope) -> None:
    result = todo_write(checklists, agent, [todo("A", "completed"), todo("B", "in_progress", id="b"), todo("C")])
    assert result.text == "[x] A\n[>] B <- Doing B\n[ ] C\n\n(1/3 completed)"
    assert [item["content"] for item in result.data["todos"]] == ["A", "B", "C"]
    assert result.data["todos"][1] == {"id": "b", "content": "B", "status": "in_progress", "activeForm": "Doing B"}
    assert result.data["progress"] == {"completed": 1, "total": 3, "percent": 33}
    assert result.data["dropped"] == []


@pytest.mark.spec("W4")
def test_the_tool_says_when_the_list_is_empty(checklists: Checklists, agent: Scope) -> None:
    assert todo_write(checklists, agent, []).text == "No todos."


@pytest.mark.spec("W3")
def test_items_keep_their_ids_across_calls(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A"), todo("B")])
    first = ids(checklists)
    checklists.rewrite(agent, [todo("C"), todo("B", "completed"), todo("A")])
    second = ids(checklists)
    assert {name: second[name] for name in "AB"} == first
    assert second["C"] not in first.values()


@pytest.mark.spec("W3")
def test_an_item_named_by_its_id_may_change_its_content(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A"), todo("B")])
    before = ids(checklists)
    rewrite = checklists.rewrite(agent, [todo("A, reworded", id=before["A"]), todo("B")])
    assert rewrite.dropped == ()
    assert ids(checklists) == {"A, reworded": before["A"], "B": before["B"]}


@pytest.mark.spec("W3")
def test_a_list_sent_again_with_ids_of_the_callers_own_drops_nothing(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A"), todo("B")])
    assert checklists.rewrite(agent, [todo("A", id="1"), todo("B", id="2")]).dropped == ()


@pytest.mark.spec("W3")
def test_unfinished_items_that_are_left_out_are_named(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A", "completed"), todo("B", "in_progress"), todo("C"), todo("D")])
    result = todo_write(checklists, agent, [todo("D")])
    assert [(item["content"], item["status"]) for item in result.data["dropped"]] == [
        ("B", "in_progress"),
        ("C", "pending"),
    ]
    assert result.text.startswith("[ ] D\n[!] B (dropped)\n[!] C (dropped)\n\n(0/1 completed)\n")
    assert "“B”, “C”" in result.text
    assert "“A”" not in result.text


@pytest.mark.spec("W11")
def test_the_status_names_of_other_tools_are_stored_as_ours(checklists: Checklists, agent: Scope) -> None:
    names = ["todo", "in-progress", "done", "complete"]
    checklists.rewrite(agent, [todo(name, name) for name in names])
    assert [item.status.value for item in checklists.get("s").items] == [
        "pending",
        "in_progress",
        "completed",
        "completed",
    ]


@pytest.mark.spec("X5")
def test_sending_the_same_list_again_writes_nothing(store: Store, checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A"), todo("B", "in_progress")])
    before = everything(store)
    rewrite = checklists.rewrite(agent, [todo("A", activeForm=" Doing A "), todo("B", "doing")])
    assert everything(store) == before
    assert (rewrite.checklist, rewrite.dropped) == (checklists.get("s"), ())


@pytest.mark.spec("W3")
def test_each_change_is_a_revision(checklists: Checklists, agent: Scope) -> None:
    for number, content in enumerate("ABC", start=1):
        assert checklists.rewrite(agent, [todo(content)]).checklist.revision == number


@pytest.mark.spec("C16")
def test_sessions_do_not_share_their_lists(checklists: Checklists, agent: Scope) -> None:
    other = Scope("another", agent.actor)
    checklists.rewrite(agent, [todo("A")])
    checklists.rewrite(other, [todo("B"), todo("C")])
    assert [item.content for item in checklists.get("s").items] == ["A"]
    assert [item.content for item in checklists.get("another").items] == ["B", "C"]
