"""The table `turn_todos` as the database itself sees it (T1)."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import IntegrityError
from tests.contract.front import by_hand, everything, nothing_changes, plan
from tests.tables import engine_of

from punchlist.conversations.model import TurnScope
from punchlist.plan.service import Plans
from punchlist.storage.store import Store

SEED = [
    "id",
    "conversation_id",
    "turn_id",
    "title",
    "context",
    "completion_criteria",
    "agent_type",
    "status",
    "priority",
    "outcome",
    "created_at",
    "started_at",
    "completed_at",
]
MAY_BE_NULL = {"agent_type", "outcome", "started_at", "completed_at", "verification"}

INSERT = (
    "INSERT INTO turn_todos (id, conversation_id, turn_id, title, created_at, checksum) "
    "VALUES ('x', :conversation, :turn, 'X', '2026-02-21T09:00:00.000000Z', 0)"
)


@pytest.mark.spec("T1")
def test_the_table_has_the_columns_of_the_seed(store: Store) -> None:
    columns = inspect(engine_of(store)).get_columns("turn_todos")
    assert [column["name"] for column in columns if column["name"] in SEED] == SEED
    assert {column["name"] for column in columns if column["nullable"]} == MAY_BE_NULL
    assert inspect(engine_of(store)).get_pk_constraint("turn_todos")["constrained_columns"] == ["id"]


@pytest.mark.spec("T1")
def test_the_table_has_both_indexes_of_the_seed(store: Store) -> None:
    indexes = {index["name"]: index["column_names"] for index in inspect(engine_of(store)).get_indexes("turn_todos")}
    assert indexes["idx_turn_todos_turn"] == ["turn_id", "status"]
    assert indexes["idx_turn_todos_conversation"] == ["conversation_id", "turn_id"]


@pytest.mark.spec("T1")
def test_what_is_left_out_has_the_defaults_of_the_seed(store: Store, turn: TurnScope) -> None:
    by_hand(store, INSERT, conversation=turn.conversation_id, turn=turn.turn_id)
    (row,) = everything(store)["turn_todos"]
    found = dict(zip(SEED, row, strict=False))
    assert {name: found[name] for name in ("context", "completion_criteria", "status", "priority")} == {
        "context": "",
        "completion_criteria": "",
        "status": "pending",
        "priority": 0,
    }


@pytest.mark.spec("T1", "T5")
def test_the_database_itself_refuses_what_the_service_would_never_write(
    store: Store, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "A", "B")
    with nothing_changes(store):
        for change in (
            "status = 'finished'",
            "status = ''",
            "status = NULL",
            "title = NULL",
            "turn_id = 'nowhere'",
            "conversation_id = 'nowhere'",
            "status = 'in_progress'",
        ):
            with pytest.raises(IntegrityError):
                by_hand(store, f"UPDATE turn_todos SET {change}")


@pytest.mark.spec("T1")
def test_the_database_knows_the_four_states(store: Store, plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A")
    for status in ("in_progress", "completed", "cancelled", "pending"):
        by_hand(store, "UPDATE turn_todos SET status = :status", status=status)
        assert [row[SEED.index("status")] for row in everything(store)["turn_todos"]] == [status]
