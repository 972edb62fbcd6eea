"""Series by day, activity since a moment, and live subscriptions."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import BUILD, ONBOARDING, SLUG, Team, developer_experience
from tests.sessions import start_session

from punchlist.conversations.model import NoticeKind, Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput
from punchlist.kernel.events import Actor, Role
from punchlist.missions import chats
from punchlist.missions.budgets.repository import Spend, SpendPlace
from punchlist.missions.budgets.service import Budgets
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.views.live import GAP_SECONDS, ActivityPage, LiveFeed, read_activity
from punchlist.views.series import read_series


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.mark.spec("M15")
@pytest.mark.spec("X4")
def test_series_count_each_day(store: Store, team: Team, clock: StoppedClock) -> None:
    todo = team.todo_in(TodoStatus.BACKLOG)
    team.todo_in(TodoStatus.PENDING)
    clock.advance(days=1)
    team.update(todo, TodoAction.PROMOTE)
    team.update(todo, TodoAction.START)
    clock.advance(days=1)
    team.todos.complete(team.lead, SLUG, todo.id, "done")
    series = read_series(store, SLUG, days=4)
    flow = [tuple(day.counts.values()) for day in series.flow]
    assert flow == [(0, 0, 0, 0, 0), (1, 1, 0, 0, 0), (0, 1, 1, 0, 0), (0, 1, 0, 1, 0)]
    assert [each[1:] for each in series.throughput] == [(BUILD, 1, 0)]
    assert (series.cycle_times.todos, series.cycle_times.median_seconds) == (1, 86_400)
    assert series.spend == [], "the run was queued, and nothing was sent to a model"
    assert series.as_json()["flow"][3]["completed"] == 1
    with pytest.raises(InvalidInput, match="days"):
        read_series(store, SLUG, days=0)


@pytest.mark.spec("X4", "M19")
def test_spend_is_that_of_each_day_and_pillar_in_the_zone_of_the_mission(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, cadence={"timezone": "Asia/Kathmandu"})
    budgets, mission, pillars = Budgets(store), team.mission, team.pillars
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    of_todo = SpendPlace(mission.id, todo.id, todo.pillar_id)
    planning = SpendPlace(mission.id, None, pillars[ONBOARDING].id)
    # 18:14 UTC is the last minute of a day in Kathmandu.
    clock.advance(hours=9, minutes=14)
    budgets.reserve(of_todo, Spend(1, 100, 10, 0.5), clock.now)
    clock.advance(minutes=1)
    budgets.reserve(of_todo, Spend(2, 200, 20, 1.0), clock.now)
    budgets.reserve(planning, Spend(1, 30, 3, 0.25), clock.now)
    budgets.reserve(SpendPlace(mission.id), Spend(1, 4, 1, 0.125), clock.now)
    team.todos.complete(team.lead, SLUG, todo.id, "done")
    series = read_series(store, SLUG, days=3)
    assert [(each.day, each.pillar, each.requests, each.input_tokens, each.cost) for each in series.spend] == [
        ("2026-02-21", BUILD, 1, 100, 0.5),
        ("2026-02-22", None, 1, 4, 0.125),
        ("2026-02-22", BUILD, 2, 200, 1.0),
        ("2026-02-22", ONBOARDING, 1, 30, 0.25),
    ]
    today = [each for each in series.spend if each.day == "2026-02-22"]
    assert sum(each.input_tokens for each in today) == budgets.today(mission).input_tokens
    assert (series.since, series.timezone) == ("2026-02-20", "Asia/Kathmandu")
    assert [(each.day, each.pillar) for each in series.throughput] == [("2026-02-22", BUILD)]
    assert [each.counts["in_progress"] for each in series.flow] == [0, 1, 0]


@pytest.mark.spec("M15", "C13")
def test_series_tell_how_turns_end_and_how_long_each_todo_took(store: Store, team: Team, clock: StoppedClock) -> None:
    conversations, chat = Conversations(store), team.mission.conversation_id
    scope = Scope(chat, Actor(Role.LEAD, "lead"))
    for reason in ("completed: nothing is open", "completed: nothing is open", "stalled: no progress", "waiting: x"):
        conversations.open_turn(scope)
        conversations.end_turn(scope, reason=reason)
    # A conversation outside of the mission does not count.
    other = Scope("another", Actor(Role.SUPERVISOR, "test"))
    conversations.open_turn(other)
    conversations.end_turn(other, reason="error: x")
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    clock.advance(hours=3)
    team.todos.complete(team.lead, SLUG, todo.id, "done")
    series = read_series(store, SLUG, days=2)
    assert {each.reason: each.turns for each in series.turns} == {"completed": 2, "stalled": 1, "waiting": 1}
    assert series.finish_rate == pytest.approx(2 / 3)
    assert [(each.pillar, each.seconds) for each in series.cycles] == [(BUILD, 3 * 3600)]
    assert series.as_json()["finishRate"] == series.finish_rate


@pytest.mark.spec("X5")
def test_activity_is_read_since_a_moment_and_by_place(store: Store, team: Team, clock: StoppedClock) -> None:
    team.create("before")
    clock.advance(hours=1)
    moment = clock.now
    created = team.create("after")
    page = read_activity(store, mission=SLUG, since=moment)
    assert [(entry.action, entry.subject) for entry in page.entries] == [("create", created.id)]
    assert read_activity(store, mission=SLUG, after=page.last).entries == []
    everything = read_activity(store, limit=3)
    assert len(everything.entries) == 3
    assert read_activity(store, after=everything.last, limit=1).entries[0].seq > everything.last
    assert read_activity(store, conversation_id="another").entries == []
    with pytest.raises(InvalidInput, match="only one"):
        read_activity(store, mission=SLUG, conversation_id="another")


@pytest.mark.spec("M15")
def test_a_subscription_continues_after_its_last_number_and_sees_other_writers(
    store: Store, database: str, team: Team
) -> None:
    feed = LiveFeed(store, read_activity(store, limit=500).last)
    assert feed.poll() == []
    other = open_store(database)
    try:
        with other.write() as tx:
            chats.post(tx, team.system, team.mission.conversation_id, NoticeKind.NOTE, "from another connection")
        [entry] = feed.poll()
        todo = team.create("more")
        resumed = LiveFeed(other, entry.seq)
        assert ("create", todo.id) in {(each.action, each.subject) for each in resumed.poll()}
        assert resumed.poll() == []
    finally:
        other.close()


@pytest.mark.spec("M15")
def test_activity_does_not_pass_over_an_event_that_becomes_visible_late(
    prepared_postgres_url: str, clock: StoppedClock
) -> None:
    """PostgreSQL numbers the events of a transaction before it commits."""
    url = prepared_postgres_url
    with closing(open_store(url, clock=clock)) as store, closing(open_store(url, clock=clock)) as other:
        team = developer_experience(store)
        before = read_activity(store, limit=500).last
        with other.write() as tx:
            chats.post(tx, team.system, team.mission.conversation_id, NoticeKind.NOTE, "late")
            start_session(store, Scope("early", team.person.actor))
            assert read_activity(store, after=before) == ActivityPage([], before)
        found = read_activity(store, after=before)
        assert [entry.conversation_id for entry in found.entries] == [team.mission.conversation_id, "early"]


@pytest.mark.spec("M15")
def test_a_gap_in_the_numbers_is_waited_for(store: Store, team: Team) -> None:
    now = 0.0
    feed = LiveFeed(store, 4, monotonic=lambda: now)
    feed._settle([5, 7, 8])
    assert feed._settled == 5
    feed._settle([6, 7, 9])
    assert feed._settled == 7
    now = GAP_SECONDS / 2
    feed._settle([9])
    assert feed._settled == 7
    now = GAP_SECONDS
    feed._settle([9])
    assert feed._settled == 9
