"""What is stored is there again: after closing, and after `kill -9` (W6, T7)."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.contract.crowd import Worker, made
from tests.contract.front import call, plan, todo
from tests.contract.writer import Task

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.plan.service import Plans
from punchlist.storage.open import open_store
from punchlist.storage.store import Store


@pytest.fixture
def restarted(store: Store, database: str) -> Iterator[Store]:
    """The same database as another process would find it."""
    again = open_store(database)
    yield again
    again.close()


@pytest.mark.spec("W6")
def test_a_list_is_there_again_when_its_session_is_resumed(
    store: Store, checklists: Checklists, agent: Scope, restarted: Store
) -> None:
    checklists.rewrite(agent, [todo("A", "completed"), todo("日本 🧑‍💻", "in_progress"), todo("C", id="c")])
    before = checklists.get("s")
    store.close()
    assert Checklists(restarted, Conversations(restarted)).get("s") == before
    assert before.revision == 1


@pytest.mark.spec("W6")
def test_a_list_is_there_again_after_kill_9(store: Store, checklists: Checklists, database: str) -> None:
    worker = Worker()
    worker.give(Task(database, "add", number=0, times=5, threads=1))
    worker.wait_until_ready()
    worker.begin()
    acknowledged = made(worker.outcomes())
    assert worker.kill() == -signal.SIGKILL
    assert [item.content for item in checklists.get("s").items] == acknowledged
    assert len(acknowledged) == 5


@pytest.mark.spec("T7")
def test_the_open_turn_and_its_plan_are_there_again(
    store: Store, plans: Plans, turn: TurnScope, restarted: Store
) -> None:
    ids = plan(plans, turn, "A", "B")
    call(plans, turn, "start_todo", todoId=ids[0])
    before = call(plans, turn, "list_todo")
    store.close()
    found = Conversations(restarted).open_turn(turn)
    assert found.id == turn.turn_id
    assert call(Plans(restarted), turn, "list_todo") == before
