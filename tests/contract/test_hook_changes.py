"""What a person changes on the copy of an agent's own list stays, on every database (X9)."""

from __future__ import annotations

import pytest
from tests.contract.front import todo

from punchlist.agent.definitions import BUILT_IN
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.integrations.hook_service import HookService
from punchlist.kernel.events import Actor, Role
from punchlist.storage.store import Store


@pytest.mark.spec("X9", "X2")
def test_what_a_person_changes_on_a_copy_stays_and_is_told_once(
    store: Store, conversations: Conversations, checklists: Checklists, agent: Scope
) -> None:
    service = HookService(store, conversations, BUILT_IN["supervisor"])
    person = Scope(agent.conversation_id, Actor(Role.PERSON, "ann"))

    def copied() -> list[tuple[str, str]]:
        assert service.copy_native_list(agent, [todo("A"), todo("A"), todo("B"), todo("C")])
        return [(item.content, item.status) for item in checklists.get(agent.conversation_id).items]

    assert copied() == [("A", "pending"), ("A", "pending"), ("B", "pending"), ("C", "pending")]
    checklists.advance(person, "2", ChecklistAction.COMPLETE, reason="todos done")
    checklists.edit(person, "3", "B and more", reason="todos edit")
    checklists.cancel(person, "4", "Not needed", reason="todos cancel")
    told = "The user completed “A”, reworded “B” as “B and more” and cancelled “C”. Bring your own list into line."
    for expected in (told, ""):
        # Of two items with one text, one is ended.
        assert sorted(copied()) == [("A", "completed"), ("A", "pending"), ("B and more", "pending"), ("C", "cancelled")]
        assert [item.reason for item in checklists.get(agent.conversation_id).items][-1] == "Not needed"
        assert service.prompt_submitted(agent, "Go on") == expected


@pytest.mark.spec("X9", "X2")
def test_an_item_that_the_agent_has_not_heard_of_is_added_whatever_happened_to_it(
    store: Store, conversations: Conversations, checklists: Checklists, agent: Scope
) -> None:
    service = HookService(store, conversations, BUILT_IN["supervisor"])
    person = Scope(agent.conversation_id, Actor(Role.PERSON, "ann"))
    service.copy_native_list(agent, [todo("A")])
    checklists.add(person, "B", "C", reason="todos add")
    checklists.cancel(person, "2", "Not now", reason="todos cancel")
    checklists.undo(person, reason="todos undo")
    checklists.cancel(person, "3", "Never", reason="todos cancel")
    assert service.prompt_submitted(agent, "Go on") == "The user added “B”. Bring your own list into line."
