"""`TodoManager`, for programs that hold on to a list (W5)."""

from __future__ import annotations

import pytest
from tests.contract.front import nothing_changes, todo

from punchlist.checklist.manager import TodoManager
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput
from punchlist.storage.store import Store


@pytest.fixture
def manager(checklists: Checklists, agent: Scope) -> TodoManager:
    return TodoManager(checklists, agent)


@pytest.mark.spec("W5")
def test_a_list_is_set_and_got(manager: TodoManager) -> None:
    returned = manager.set_todos([todo("A", "completed"), todo("B", "in_progress"), todo("C", id="c")])
    assert returned == manager.get_todos()
    assert [item["content"] for item in returned] == ["A", "B", "C"]
    assert returned[2] == {"id": "c", "content": "C", "status": "pending", "activeForm": "Doing C"}


@pytest.mark.spec("W5")
def test_what_is_in_progress_is_known(manager: TodoManager) -> None:
    assert manager.get_in_progress() is None
    manager.set_todos([todo("A"), todo("B", "in_progress", id="b")])
    assert manager.get_in_progress() == {
        "id": "b",
        "content": "B",
        "status": "in_progress",
        "activeForm": "Doing B",
    }


@pytest.mark.spec("W5")
def test_progress_is_counted(manager: TodoManager) -> None:
    assert manager.get_progress() == {"completed": 0, "total": 0, "percent": 0}
    manager.set_todos([todo("A", "completed"), todo("B", "completed"), todo("C")])
    assert manager.get_progress() == {"completed": 2, "total": 3, "percent": 67}


@pytest.mark.spec("W5")
def test_a_cleared_list_is_empty(manager: TodoManager) -> None:
    manager.set_todos([todo("A")])
    manager.clear()
    assert manager.get_todos() == []


@pytest.mark.spec("W5")
def test_returned_lists_are_copies(manager: TodoManager) -> None:
    sent = [todo("A", "in_progress")]
    returned = manager.set_todos(sent)
    before = manager.get_todos()
    sent[0]["content"] = "changed"
    returned[0]["content"] = "changed"
    returned.clear()
    got = manager.get_todos()
    got[0]["status"] = "completed"
    got.append(got[0])
    running = manager.get_in_progress()
    assert running
    running["content"] = "changed"
    progress = manager.get_progress()
    progress["completed"] = 99
    assert manager.get_todos() == before
    assert manager.get_in_progress() == before[0]
    assert manager.get_progress()["completed"] == 0


@pytest.mark.spec("W1", "W5")
def test_a_bad_list_is_refused_and_the_old_one_stays(store: Store, manager: TodoManager) -> None:
    manager.set_todos([todo("A")])
    with nothing_changes(store), pytest.raises(InvalidInput, match=r"^todos\[0\]\.status: "):
        manager.set_todos([todo("B", "unheard of")])


@pytest.mark.spec("W5", "W6")
def test_two_managers_of_one_session_see_the_same_list(checklists: Checklists, agent: Scope) -> None:
    one, other = TodoManager(checklists, agent), TodoManager(checklists, agent)
    one.set_todos([todo("A")])
    assert other.get_todos() == one.get_todos() != []
