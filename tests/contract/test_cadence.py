"""Cycles are begun once for each moment of the cadence, whoever looks and whatever their clocks say (M12)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from random import Random

import pytest
from tests.contract.missions import Team, developer_experience

from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions.changes import MissionAction
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.planning.cadence import due_tick
from punchlist.missions.service import Missions
from punchlist.storage.store import Store


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store, cadence={"cron": "*/30 * * * *", "timezone": "Europe/Berlin"})


def look(team: Team, missions: Missions, now: datetime) -> str | None:
    """What whoever begins cycles does; the tick that it got."""
    mission = missions.get(team.slug)
    cadence = cadence_of(mission)
    assert cadence.cron is not None
    tick = due_tick(cadence.cron, cadence.timezone, mission.last_tick, mission.updated_at, now)
    return tick if tick and missions.take_tick(team.system, mission.id, tick) else None


@pytest.mark.spec("M12")
def test_of_many_who_look_at_once_one_begins_the_cycle(team: Team) -> None:
    now = parse_timestamp(team.mission.created_at) + timedelta(minutes=31)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: look(team, team.missions, now), range(24)))
    assert [tick for tick in got if tick] == ["2026-02-21T09:30:00.000000Z"]


@pytest.mark.spec("M12")
@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(days=1)])
def test_clocks_that_jump_both_ways_begin_no_cycle_twice_and_lose_none(team: Team, jump: timedelta) -> None:
    """Two programs, one of which has a clock that is sometimes ahead, sometimes behind."""
    start, dice = parse_timestamp(team.mission.created_at), Random(12)
    taken: list[str] = []
    furthest = start
    for minutes in range(0, 6 * 60, 10):
        real = start + timedelta(minutes=minutes)
        for now in (real, real + dice.choice([jump, -jump, timedelta()])):
            furthest = max(furthest, now)
            if tick := look(team, team.missions, now):
                taken.append(tick)
            # The newest moment that any clock has shown has had its cycle.
            newest = due_tick("*/30 * * * *", "Europe/Berlin", None, timestamp(start), furthest)
            assert (taken[-1] if taken else None) == newest
    assert taken == sorted(set(taken))
    assert [event.payload()["last_tick"] for event in team.trail() if event.action == MissionAction.TAKE_TICK] == taken


@pytest.mark.spec("M12")
def test_time_that_passed_while_nobody_looked_is_made_up_for_by_one_cycle(team: Team) -> None:
    now = parse_timestamp(team.mission.created_at) + timedelta(days=40, minutes=5)
    assert look(team, team.missions, now) == timestamp(now - timedelta(minutes=5))
    assert look(team, team.missions, now) is None
