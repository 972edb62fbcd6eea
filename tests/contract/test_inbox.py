"""Failed cycles are in the inbox until they are retried or replaced."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import Team, developer_experience

from punchlist.engine.periodic import enqueue_cycle
from punchlist.kernel.clock import timestamp
from punchlist.missions.run_control import MissionRuns
from punchlist.runs.queue import RunQueue
from punchlist.storage.store import Store
from punchlist.views.inbox import Inbox


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def inbox(store: Store) -> Inbox:
    nothing: Any = SimpleNamespace(waiting=list, list=list)
    return Inbox(cast("Any", SimpleNamespace(store=store, approvals=nothing, escalations=nothing)))


def test_a_failed_cycle_needs_a_person(team: Team, clock: StoppedClock) -> None:
    run = enqueue_cycle(team.store, team.system, team.mission)
    assert inbox(team.store).list() == []
    queue = RunQueue(team.store, "worker")
    assert queue.dispatch(run)
    assert queue.begin(run.id)
    queue.fail(run.id, "the model is busy")
    (item,) = inbox(team.store).list()
    assert (item.kind, item.subject, item.mission, item.run_id) == ("failure", "cycle", team.slug, run.id)
    assert (item.question, item.answers, item.requester) == ("the model is busy", ("retry",), run.created_by)
    assert item.reason == f"is retried at {timestamp(clock.now + timedelta(minutes=1))}"
    assert inbox(team.store).find(str(item.number)) == item
    MissionRuns(team.store).resume(team.person, run.id)
    assert inbox(team.store).list() == []
