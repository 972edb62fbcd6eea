"""The previous list can be restored, and the one before that (W3)."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import nothing_changes, todo, trail

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition
from punchlist.kernel.events import Actor, Role
from punchlist.storage.open import open_store
from punchlist.storage.store import Store


def contents(checklists: Checklists) -> str:
    return " ".join(item.content for item in checklists.get("s").items)


def undo(checklists: Checklists, agent: Scope) -> str:
    checklists.undo(agent, reason="test")
    return contents(checklists)


def write(checklists: Checklists, agent: Scope, *lists: str) -> None:
    """Finished items: those that are left out are gone."""
    for wanted in lists:
        checklists.rewrite(agent, [todo(content, "completed") for content in wanted.split()])


@pytest.mark.spec("W3")
def test_a_list_comes_back_with_its_ids_and_states(checklists: Checklists, agent: Scope) -> None:
    before = checklists.rewrite(agent, [todo("A", "completed"), todo("B", "in_progress"), todo("C")]).checklist
    checklists.rewrite(agent, [todo("other")])
    restored = checklists.undo(agent, reason="test").checklist
    assert restored.items == before.items
    assert restored.revision == 3


@pytest.mark.spec("W3")
def test_undo_goes_back_one_change_at_a_time_to_the_empty_list(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    write(checklists, agent, "A", "A B", "C", "")
    assert [undo(checklists, agent) for _ in range(4)] == ["C", "A B", "A", ""]
    with nothing_changes(store), pytest.raises(IllegalTransition, match="nothing to undo"):
        checklists.undo(agent, reason="test")


@pytest.mark.spec("W3")
def test_a_change_after_an_undo_is_undone_first(checklists: Checklists, agent: Scope) -> None:
    write(checklists, agent, "A", "B", "C")
    assert undo(checklists, agent) == "B"
    write(checklists, agent, "D")
    assert [undo(checklists, agent) for _ in range(3)] == ["B", "A", ""]


@pytest.mark.spec("W3")
def test_undo_undo_write_undo_undo_never_loses_its_way(checklists: Checklists, agent: Scope) -> None:
    write(checklists, agent, "A", "B")
    assert [undo(checklists, agent), undo(checklists, agent)] == ["A", ""]
    write(checklists, agent, "C", "D")
    assert undo(checklists, agent) == "C"
    write(checklists, agent, "E")
    assert [undo(checklists, agent) for _ in range(2)] == ["C", ""]
    with pytest.raises(IllegalTransition):
        checklists.undo(agent, reason="test")


@pytest.mark.spec("W3")
def test_in_a_new_session_there_is_nothing_to_undo(store: Store, checklists: Checklists, agent: Scope) -> None:
    with nothing_changes(store), pytest.raises(IllegalTransition):
        checklists.undo(agent, reason="test")


@pytest.mark.spec("W3")
def test_undo_stays_within_its_session(checklists: Checklists, agent: Scope) -> None:
    write(checklists, agent, "A", "B")
    write(checklists, Scope("another", agent.actor), "X", "Y")
    assert undo(checklists, agent) == "A"
    assert [item.content for item in checklists.get("another").items] == ["Y"]


@pytest.mark.spec("W3")
def test_undo_tells_which_unfinished_items_it_takes_off(checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A")])
    checklists.rewrite(agent, [todo("A"), todo("B")])
    assert [item.content for item in checklists.undo(agent, reason="test").dropped] == ["B"]


@pytest.mark.spec("W3", "X5")
def test_whoever_undoes_is_in_the_trail(store: Store, checklists: Checklists, agent: Scope) -> None:
    write(checklists, agent, "A", "B")
    checklists.undo(Scope("s", Actor(Role.PERSON, "ada")), reason="not what I meant")
    last = trail(store)[-1]
    assert (last.actor, last.action, last.reason) == ("person:ada", "undo", "not what I meant")


@pytest.mark.spec("W3", "W6")
def test_a_list_can_be_undone_after_a_restart(
    store: Store, checklists: Checklists, agent: Scope, database: str, clock: StoppedClock
) -> None:
    write(checklists, agent, "A", "B")
    store.close()
    again = open_store(database, clock=clock)
    assert undo(Checklists(again, Conversations(again)), agent) == "A"
    again.close()
