"""PostgreSQL may use several workers for one query, and then answers in any order."""

from __future__ import annotations

import psycopg
import pytest
from tests.contract.front import call, plan

from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.plan.model import NewTodo
from punchlist.plan.service import Plans
from punchlist.storage.open import open_store

# The planner sends two workers by itself once the table is large: one for each half of a UNION ALL.
AS_IF_THE_TABLE_WERE_LARGE = {
    "parallel_setup_cost": "0",
    "parallel_tuple_cost": "0",
    "min_parallel_table_scan_size": "'10GB'",
    "min_parallel_index_scan_size": "'10GB'",
    "parallel_leader_participation": "off",
}


@pytest.mark.spec("T3", "X7")
def test_a_plan_is_counted_alike_however_the_server_goes_about_it(postgres_url: str, agent: Scope) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name, value in AS_IF_THE_TABLE_WERE_LARGE.items():
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {name} = {value}".encode())
    store = open_store(postgres_url)
    turn = TurnScope("s", agent.actor, Conversations(store).open_turn(agent).id)
    plans = Plans(store)
    plans.create(turn, [NewTodo("x")] * 1_000)
    done, *_ = plan(plans, turn, "A", "B")
    call(plans, turn, "complete_todo", todoId=done, outcome="done")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    listed = [call(plans, turn, "list_todo")["summary"] for _ in range(10)]
    store.close()
    assert listed == [{"total": 1_002, "pending": 1_001, "inProgress": 0, "completed": 1, "cancelled": 0}] * 10
