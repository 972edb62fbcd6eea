"""A session with something of everything in it, for tests that look at the whole store."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conftest import StoppedClock
from tests.contract.front import call, plan, todo
from tests.sessions import add_trace

from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.plan.service import Plans
from punchlist.storage.store import Store

ADA = Actor(Role.PERSON, "ada")


@dataclass(frozen=True)
class Scenario:
    """What was made, and the streams it left in the trail."""

    turn_id: str
    todo_ids: list[str]

    @property
    def streams(self) -> list[str]:
        return ["conversation:s", "checklist:s", f"plan:{self.turn_id}"]


def play(store: Store, clock: StoppedClock, agent: Scope) -> Scenario:
    """Every kind of change there is, a second apart, by an agent and by a person."""
    conversations = Conversations(store)
    checklists = Checklists(store, conversations)
    plans = Plans(store)
    person = Scope(agent.conversation_id, ADA)

    def then() -> None:
        clock.advance(seconds=1)

    turn = TurnScope(agent.conversation_id, agent.actor, conversations.open_turn(agent).id)
    then()
    conversations.add_message(person, MessageRole.USER, "Fix it", turn_id=turn.turn_id)
    then()
    add_trace(store, turn, turn.turn_id, output="I will")
    then()
    checklists.rewrite(agent, [todo("A", "in_progress"), todo("B"), todo("C")])
    then()
    checklists.advance(person, "1", ChecklistAction.COMPLETE, reason="saw it work")
    then()
    checklists.edit(person, "2", "B, but better", reason="clearer")
    then()
    checklists.remove(person, "3", reason="not needed")
    then()
    checklists.undo(person, reason="needed after all")
    then()
    first, second, third = plan(plans, turn, "first", "second", "third")
    then()
    (zeroth,) = call(plans, turn, "create_todo", items=[{"title": "zeroth", "order": 1, "context": "why"}])["created"]
    then()
    call(plans, turn, "start_todo", todoId=first)
    then()
    call(plans, turn, "complete_todo", todoId=first, outcome="went well")
    then()
    call(plans, turn, "complete_todo", todoId=second, outcome="not needed", status="cancelled")
    then()
    conversations.end_turn(person, reason="a new prompt")
    then()
    return Scenario(turn.turn_id, [zeroth["id"], first, second, third])
