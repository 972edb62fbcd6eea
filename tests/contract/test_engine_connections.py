"""The connections of the durable engine: bounded, and a frozen worker does not keep its locks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbos._dbos import _get_dbos_instance
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office

from punchlist.conversations.message_queue import MessageQueue
from punchlist.engine.database import POOL_SIZE
from punchlist.missions.model import MissionScope
from punchlist.models.model import ModelRequest, Reply


@pytest.mark.spec("X7")
def test_the_engine_has_a_pool_of_ten_and_its_idle_transactions_end(
    tmp_path: Path, database: str, clock: StoppedClock
) -> None:
    found: dict[str, Any] = {}

    def answers(_: str, __: ModelRequest) -> Reply:
        engine: Any = _get_dbos_instance()._sys_db.engine
        found["size"] = engine.pool.size()
        if engine.dialect.name == "postgresql":
            with engine.connect() as connection:
                found["idle"] = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
        return Reply("Hello.")

    ours = Office(tmp_path / "project", database, clock, answers)
    team = ours.team
    MessageQueue(team.store).add(MissionScope(team.mission.conversation_id, team.person.actor), "Hello?")
    ours.work()
    ours.close()
    assert found.pop("size") == POOL_SIZE == 10
    assert found == ({} if database.startswith("sqlite") else {"idle": "20s"})
