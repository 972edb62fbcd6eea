"""Standing instructions of people to a mission (M17), on both databases."""

from __future__ import annotations

import re
from typing import Final

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import Team, developer_experience

from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.token_estimate import estimated_tokens
from punchlist.missions import replay as mission_replay
from punchlist.missions.directives import repository as directive_repository
from punchlist.missions.directives import service as directives_service
from punchlist.missions.directives.model import MAX_IN_FORCE, MAX_LENGTH
from punchlist.missions.directives.service import Directives
from punchlist.missions.planning.mission_state import MAX_RECOMMENDATIONS, bounded_state, mission_state
from punchlist.missions.recommendations.service import Recommendations
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
    assert estimated_tokens(state) <= 6_000
    assert bounded_state("", "Short.") == "Short."


CHINESE: Final = ("构建优先于其他工作请每天检查结果" * 40)[:499]
"""Of about 499 tokens."""


@pytest.mark.spec("M10", "M17")
def test_directives_of_many_tokens_are_limited_together(team: Team, directives: Directives) -> None:
    for _ in range(5):
        directives.add(team.person, team.slug, CHINESE)
    with pytest.raises(IllegalTransition, match=r"would have about 2,994 tokens; 2,500 is the limit.*Shorten it"):
        directives.add(team.person, team.slug, CHINESE)
    directives.end(team.person, team.slug, 1)
    directives.add(team.person, team.slug, CHINESE)
    state = mission_state(team.store, team.mission)
    assert state.count(CHINESE) == 5
    assert estimated_tokens(bounded_state(state, CHINESE * 100)) <= 5_000


@pytest.mark.spec("M10")
def test_directives_of_an_earlier_version_do_not_exceed_the_state(
    team: Team, directives: Directives, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(directives_service, "MAX_TOTAL_LENGTH", 10**9)
        for _ in range(MAX_IN_FORCE):
            directives.add(team.person, team.slug, CHINESE, until="2099-12-31T23:59:59Z")
    state = mission_state(team.store, team.mission, decides=True)
    assert estimated_tokens(state) <= 3_500
    assert state.count("Ask a person for the rest") == MAX_IN_FORCE


@pytest.mark.spec("M10")
def test_recommendations_of_many_tokens_are_counted_instead_of_shown(team: Team) -> None:
    recommendations = Recommendations(team.store)
    for number in range(MAX_RECOMMENDATIONS):
        recommendations.add(team.owner, team.slug, f"{number} {CHINESE}")
    state = mission_state(team.store, team.mission, decides=True)
    assert estimated_tokens(state) <= 2_000
    shown = len(re.findall(r"^\d+\. ", state, re.MULTILINE))
    assert 5 < shown < MAX_RECOMMENDATIONS
    assert f"and {MAX_RECOMMENDATIONS - shown} more: read them with" in state
