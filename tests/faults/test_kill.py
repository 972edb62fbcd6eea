"""`kill -9` at any moment: what was acknowledged is there, and nothing is half there (trust test 1)."""

from __future__ import annotations

import random

import psycopg
import pytest
from tests.faults.processes import Writer, eventually, spin
from tests.faults.script import CHANGES_PER_ROUND, TODOS_PER_ROUND, Script, position


@pytest.mark.spec("W6", "T7")
@pytest.mark.parametrize(
    ("kills", "todos"), [(12, 120), pytest.param(1_000, 10_000, marks=pytest.mark.soak)], ids=["seconds", "full"]
)
def test_a_killed_writer_loses_nothing_that_it_acknowledged(database: str, kills: int, todos: int) -> None:
    moments = random.Random(9)
    per_life = todos * CHANGES_PER_ROUND // TODOS_PER_ROUND // kills
    bystander = Script(database)
    made = 0
    for life in range(kills):
        # Every other time nobody else has the database open, so that who comes next has to recover it.
        if life % 2:
            bystander.close()
        with Writer(database, first=made) as writer:
            writer.wait_for(made + moments.randint(1, 2 * per_life))
            # To some point inside of its next change.
            spin(moments.uniform(0, 0.003))
            acknowledged = writer.kill()
        _wait_for_the_server_to_notice(database)
        found = position(bystander.lists())
        assert found in (acknowledged, acknowledged + 1), f"life {life}: the lists are at {found}"
        assert bystander.problems() == []
        made = found
    bystander.close()
    assert made >= kills


def _wait_for_the_server_to_notice(database: str) -> None:
    """A PostgreSQL server finishes what it was sent before it sees that the client is gone."""
    if not database.startswith("postgresql"):
        return
    with psycopg.connect(database, autocommit=True) as connection:

        def alone() -> bool:
            busy = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND state <> 'idle'"
            ).fetchone()
            return busy == (0,)

        eventually(alone, "the server ends the killed writer's session")
