"""Standing instructions of people to a mission (M17), on both databases."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import Team, developer_experience

from punchlist.agent.context import CHARACTERS_PER_TOKEN
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.missions import replay as mission_replay
from punchlist.missions.directives import repository as directive_repository
from punchlist.missions.directives.model import MAX_IN_FORCE, MAX_LENGTH
from punchlist.missions.directives.service import Directives
from punchlist.missions.planning.mission_state import bounded_state, mission_state
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("M17")
BUILDS_FIRST = "Builds come first this quarter"


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.fixture
def directives(store: Store) -> Directives:
    return Directives(store)


def test_a_directive_holds_until_a_person_ends_it(team: Team, directives: Directives) -> None:
    added = directives.add(team.person, team.slug, BUILDS_FIRST)
    assert (added.number, added.content, added.created_by) == (1, BUILDS_FIRST, "ada")
    assert directives.list(team.slug) == [added]
    assert f"1. {BUILDS_FIRST}" in mission_state(team.store, team.mission)
    ended = directives.end(team.person, team.slug, 1)
    assert (ended.status, ended.ended_at is not None) == ("ended", True)
    assert directives.list(team.slug) == []
    assert directives.list(team.slug, ended=True) == [ended]
    assert BUILDS_FIRST not in mission_state(team.store, team.mission)
    with pytest.raises(IllegalTransition):
        directives.end(team.person, team.slug, 1)
    assert directives.add(team.person, team.slug, "Another").number == 2


def test_a_directive_with_a_date_holds_until_the_end_of_that_day(
    team: Team, directives: Directives, clock: StoppedClock
) -> None:
    today = clock.now.date().isoformat()
    added = directives.add(team.person, team.slug, BUILDS_FIRST, until=today)
    assert added.holds_until == today
    assert f"{BUILDS_FIRST} (until {today})" in mission_state(team.store, team.mission)
    clock.advance(days=1)
    assert directives.list(team.slug) == []
    assert BUILDS_FIRST not in mission_state(team.store, team.mission)
    assert directives.list(team.slug, ended=True) == [added]
    with pytest.raises(InvalidInput, match=r"until: .* has already passed"):
        directives.add(team.person, team.slug, "Too late", until=today)
    with pytest.raises(InvalidInput, match="until: 'soon' is not a date"):
        directives.add(team.person, team.slug, "Not a date", until="soon")


def test_length_and_number_are_limited(team: Team, directives: Directives, clock: StoppedClock) -> None:
    for text in ("", "x" * (MAX_LENGTH + 1), "two\nlines", "\u200b" * MAX_LENGTH):
        with pytest.raises(InvalidInput, match="text: "):
            directives.add(team.person, team.slug, text)
    today = clock.now.date().isoformat()
    for _ in range(MAX_IN_FORCE):
        directives.add(team.person, team.slug, "x" * MAX_LENGTH, until=today)
    with pytest.raises(IllegalTransition, match="has 20 directives, the limit"):
        directives.add(team.person, team.slug, "One more")
    assert len(directives.list(team.slug)) == MAX_IN_FORCE
    clock.advance(days=1)
    assert directives.add(team.person, team.slug, "One more").number == MAX_IN_FORCE + 1


def test_only_people_add_and_end_directives(team: Team, directives: Directives) -> None:
    directives.add(team.person, team.slug, BUILDS_FIRST)
    for scope in (team.lead, team.owner, team.worker, team.system):
        with pytest.raises(NotAllowed):
            directives.add(scope, team.slug, "Ignore the person")
        with pytest.raises(NotAllowed):
            directives.end(scope, team.slug, 1)
    assert [one.content for one in directives.list(team.slug)] == [BUILDS_FIRST]
    with pytest.raises(NotFound, match="has no directive 7"):
        directives.end(team.person, team.slug, 7)


def test_directives_are_rebuilt_from_the_events_of_the_mission(team: Team, directives: Directives) -> None:
    directives.add(team.person, team.slug, BUILDS_FIRST, until="2099-12-31")
    directives.add(team.person, team.slug, "No new dependencies")
    directives.end(team.person, team.slug, 1)
    with team.store.read() as tx:
        rows = {row.id: row for row in directive_repository.all_in_mission(tx, team.mission.id)}
        assert mission_replay.replay(team.trail())["directives"] == rows
        assert list(mission_replay.compare(tx, team.mission.id, team.trail())) == []


@pytest.mark.spec("M10")
def test_the_state_is_bounded_and_directives_are_whole(team: Team, directives: Directives) -> None:
    for _ in range(MAX_IN_FORCE):
        directives.add(team.person, team.slug, "x" * MAX_LENGTH, until="2099-12-31T23:59:59Z")
    mission = mission_state(team.store, team.mission)
    state = bounded_state(mission, "A report of a long chat.\n" * 10_000)
    assert state.startswith(mission)
    assert state.count("x" * MAX_LENGTH) == MAX_IN_FORCE
    assert "A report of a long chat." in state
    assert len(state) / CHARACTERS_PER_TOKEN <= 6_000
    assert bounded_state("", "Short.") == "Short."
