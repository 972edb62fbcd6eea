"""`TurnTodoRepository`, inside a transaction (T6)."""

from __future__ import annotations

import pytest

from punchlist.conversations.model import TurnScope
from punchlist.kernel.ids import new_id
from punchlist.plan.lifecycle import OPEN, PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.plan.repository import TurnTodoRepository
from punchlist.storage.store import Store


def row(turn: TurnScope, title: str, priority: int = 0, *, second: int = 0, status: str = "pending") -> TurnTodo:
    return TurnTodo(
        id=new_id(),
        conversation_id=turn.conversation_id,
        turn_id=turn.turn_id,
        title=title,
        context="",
        completion_criteria="",
        agent_type=None,
        status=PlanStatus(status),
        priority=priority,
        outcome=None,
        created_at=f"2026-02-21T09:00:{second:02}.000000Z",
        started_at=None,
        completed_at=None,
    )


@pytest.mark.spec("T6")
def test_what_was_created_is_found_by_its_id(store: Store, turn: TurnScope) -> None:
    todo = row(turn, "日本 🧑‍💻")
    with store.write() as tx:
        assert TurnTodoRepository(tx).create(todo) == todo
    with store.read() as tx:
        assert TurnTodoRepository(tx).find_by_id(todo.id) == todo
        assert TurnTodoRepository(tx).find_by_id("nothing") is None


@pytest.mark.spec("T3", "T6")
def test_a_turns_todos_are_found_by_priority_then_creation(
    store: Store, turn: TurnScope, other_turn: TurnScope
) -> None:
    batch = [
        row(turn, "fourth", 2)._replace(id="a"),
        row(turn, "third", 1, second=9)._replace(id="b"),
        row(turn, "second", 1, second=3)._replace(id="c"),
        row(turn, "first", 0, second=30)._replace(id="d"),
    ]
    with store.write() as tx:
        assert TurnTodoRepository(tx).create_batch(batch) == batch
        TurnTodoRepository(tx).create(row(other_turn, "elsewhere"))
    with store.read() as tx:
        found = TurnTodoRepository(tx).find_by_turn(turn.turn_id)
    assert [todo.title for todo in found] == ["first", "second", "third", "fourth"]


@pytest.mark.spec("T6")
def test_todos_are_found_by_any_choice_of_states(store: Store, turn: TurnScope) -> None:
    with store.write() as tx:
        TurnTodoRepository(tx).create_batch([row(turn, status, status=status) for status in PlanStatus])
    choices = [
        {PlanStatus.PENDING},
        OPEN,
        {PlanStatus.PENDING, PlanStatus.CANCELLED},
        set(PlanStatus),
        set[PlanStatus](),
    ]
    with store.read() as tx:
        repository = TurnTodoRepository(tx)
        for wanted in choices:
            assert {todo.status for todo in repository.find_by_turn(turn.turn_id, wanted)} == wanted
        assert repository.count_by_status(turn.turn_id) == dict.fromkeys(PlanStatus, 1)
        assert repository.count_by_status("nowhere") == dict.fromkeys(PlanStatus, 0)


@pytest.mark.spec("T6")
def test_an_update_is_written_only_over_the_state_that_was_read(store: Store, turn: TurnScope) -> None:
    todo = row(turn, "A")
    with store.write() as tx:
        repository = TurnTodoRepository(tx)
        repository.create(todo)
        started = repository.update(todo, status=PlanStatus.IN_PROGRESS, started_at="2026-02-21T09:00:01.000000Z")
        assert started
        assert repository.find_by_id(todo.id) == started
        assert repository.update(todo, status=PlanStatus.CANCELLED, outcome="late") is None
        assert repository.find_by_id(todo.id) == started


@pytest.mark.spec("T6")
def test_nothing_is_left_of_a_transaction_that_failed(store: Store, turn: TurnScope) -> None:
    def fail_half_way() -> None:
        with store.write() as tx:
            TurnTodoRepository(tx).create(row(turn, "A"))
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way()
    with store.read() as tx:
        assert TurnTodoRepository(tx).find_by_turn(turn.turn_id) == []
