"""Looking after deadlines and the backlog at each cycle (M13, M14), on both databases, with a clock that stands."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import everything
from tests.contract.missions import BUILD, ONBOARDING, Team, developer_experience

from punchlist.conversations.model import NoticeKind
from punchlist.conversations.service import Conversations
from punchlist.errors import NotAllowed, NotFound
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.model import MissionTodo
from punchlist.missions.planning.overdue import OverdueService
from punchlist.missions.todos.deadlines import OverdueReport
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.storage.store import Store

TODAY, TOMORROW = "2026-02-21", "2026-02-22"


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def sweep(team: Team) -> OverdueReport:
    return OverdueService(team.store).process_mission(team.system, team.mission.id)


def with_policy(store: Store, **policy: Any) -> Team:
    return developer_experience(store, todo={"activeTodoLimit": 10, "backlogTodoLimit": 50, **policy})


def said(team: Team, chat: str, kind: str) -> list[str]:
    return [one.content for one in Conversations(team.store).messages(chat) if one.kind == kind]


def in_mission_chat(team: Team, kind: str = NoticeKind.ESCALATION) -> list[str]:
    return said(team, team.mission.conversation_id, kind)


def now(team: Team, todo: MissionTodo) -> MissionTodo:
    return team.todos.get(todo.id)


# --- deadlines ---------------------------------------------------------------------------------------


@pytest.mark.spec("M13")
def test_nothing_is_done_before_a_deadline_has_passed(team: Team, clock: StoppedClock) -> None:
    team.todo_in(TodoStatus.IN_PROGRESS, "A", deadline=TODAY)
    team.create("B", deadline="2026-02-21T10:00:00+00:00")
    team.create("C")
    before = everything(team.store)
    assert sweep(team) == OverdueReport()
    clock.now = datetime(2026, 2, 21, 9, 59, 59, 999_999, tzinfo=UTC)
    assert sweep(team) == OverdueReport()
    assert everything(team.store) == before


@pytest.mark.spec("M13")
def test_a_day_ends_where_the_mission_is(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, cadence={"cron": "0 9 * * 1", "timezone": "America/New_York"})
    todo = team.create("A", deadline=TODAY)
    clock.now = datetime(2026, 2, 22, 4, 59, tzinfo=UTC)
    assert not sweep(team).overdue
    clock.now = datetime(2026, 2, 22, 5, 0, tzinfo=UTC)
    assert [one.id for one in sweep(team).overdue] == [todo.id]


@pytest.mark.spec("M13")
def test_overdue_work_is_flagged_its_worker_warned_and_a_person_asked(team: Team, clock: StoppedClock) -> None:
    todo = team.create("Profile webpack build", deadline=TODAY)
    clock.advance(hours=1)
    team.update(todo, TodoAction.START)
    clock.advance(days=1)
    swept = sweep(team)

    assert now(team, todo).status is TodoStatus.IN_PROGRESS
    assert now(team, todo).overdue_at == "2026-02-22T10:00:00.000000Z"
    assert [one.id for one in swept.overdue] == [one.id for one in swept.warned] == [todo.id]
    (warning,) = said(team, team.pillars[BUILD].todo_conversation_id, NoticeKind.DEADLINE_WARNING)
    assert warning.startswith("Deadline passed: Profile webpack build. It was due 2026-02-21.")
    (asked,) = swept.escalated
    assert in_mission_chat(team) == [asked.question]
    assert asked.question == (
        "TODO overdue: Profile webpack build. Status: in_progress since 2026-02-21.\n"
        "Please advise: extend deadline or cancel?\n"
        "Its owner was warned.\n"
        f"Answer in this chat, or with `punchlist mission answer {asked.id[-8:]} extend DATE`, `cancel`, or `keep` "
        "to leave the todo unchanged."
    )


@pytest.mark.spec("M13")
def test_what_was_never_started_gives_up_its_slot(team: Team, clock: StoppedClock) -> None:
    todo = team.create("A", deadline=TODAY)
    clock.advance(days=1)
    swept = sweep(team)
    assert now(team, todo).status is TodoStatus.BACKLOG
    assert [one.id for one in swept.demoted] == [todo.id]
    assert (team.todos.capacity(team.slug).active, team.todos.capacity(team.slug).backlog) == (0, 1)
    (question,) = in_mission_chat(team)
    assert question.startswith(
        "TODO overdue: A. Status: pending since 2026-02-21.\nPlease advise: extend deadline or cancel?\n"
        "It was never started, so it was moved to the backlog.\n"
    )


@pytest.mark.spec("M13")
def test_since_when_is_since_it_came_into_its_state(team: Team, clock: StoppedClock) -> None:
    todo = team.todo_in(TodoStatus.BACKLOG, deadline="2026-02-25")
    clock.advance(days=2)
    team.update(todo, TodoAction.PROMOTE)
    clock.advance(days=1)
    team.update(todo, TodoAction.EXTEND, deadline="2026-02-26")
    clock.advance(days=7)
    sweep(team)
    (question,) = in_mission_chat(team)
    assert "Status: pending since 2026-02-23." in question


@pytest.mark.spec("M13")
def test_a_policy_can_cancel_what_was_never_started(store: Store, clock: StoppedClock) -> None:
    team = with_policy(store, overduePendingPolicy="cancel")
    todo = team.create("A", deadline=TODAY)
    clock.advance(days=1)
    swept = sweep(team)
    assert now(team, todo).status is TodoStatus.CANCELLED
    assert now(team, todo).outcome == "It was due 2026-02-21. It was never started."
    assert [one.id for one in swept.cancelled] == [todo.id]
    # It is said, once, and nobody is reminded of what is over.
    assert [one.status for one in swept.escalated] == ["answered"]
    assert len(in_mission_chat(team)) == 1
    clock.advance(days=3)
    assert not sweep(team).has_actions
    assert Escalations(store).list(team.slug) == []


@pytest.mark.spec("M13")
def test_a_policy_can_keep_what_was_never_started(store: Store, clock: StoppedClock) -> None:
    team = with_policy(store, overduePendingPolicy="keep")
    todo = team.create("A", deadline=TODAY)
    clock.advance(days=1)
    swept = sweep(team)
    assert now(team, todo).status is TodoStatus.PENDING
    assert now(team, todo).overdue_at is not None
    assert (swept.demoted, swept.cancelled, swept.warned) == ((), (), ())
    assert len(swept.escalated) == 1


@pytest.mark.spec("M13", "M2")
def test_a_full_backlog_stays_within_its_limit_and_that_is_said(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, backlog=2)
    team.todo_in(TodoStatus.BACKLOG, "Shelved")
    first = team.create("First", deadline="2026-02-21T12:00:00Z")
    second = team.create("Second", deadline=TODAY)
    clock.advance(days=1)
    swept = sweep(team)
    assert [one.id for one in swept.demoted] == [first.id]
    assert now(team, second).status is TodoStatus.PENDING
    assert team.todos.capacity(team.slug).backlog == 2
    assert "It stays pending because the backlog is full (2)." in in_mission_chat(team)[1]
    # It does not move later by itself, either: a person is asked.
    team.update(first, TodoAction.CANCEL)
    clock.advance(hours=1)
    assert not sweep(team).has_actions


@pytest.mark.spec("M13")
def test_what_is_in_the_backlog_or_has_ended_is_not_overdue(team: Team, clock: StoppedClock) -> None:
    for status in (TodoStatus.BACKLOG, TodoStatus.COMPLETED, TodoStatus.CANCELLED):
        team.todo_in(status, status.value, deadline=TODAY)
    clock.advance(days=10)
    assert sweep(team) == OverdueReport()


@pytest.mark.spec("M13")
def test_a_second_look_at_the_same_moment_does_nothing(store: Store, clock: StoppedClock) -> None:
    team = with_policy(store, staleBacklogAfterDays=30)
    for status in (TodoStatus.PENDING, TodoStatus.IN_PROGRESS, TodoStatus.BACKLOG):
        team.todo_in(status, status.value, deadline=TODAY)
    clock.advance(days=40)
    first = sweep(team)
    assert first.has_actions
    before = everything(team.store)
    again = sweep(team)
    assert not again.has_actions
    assert [one.id for one in again.stale] == [one.id for one in first.stale]
    assert everything(team.store) == before


@pytest.mark.spec("M13")
def test_many_who_look_at_once_ask_once(team: Team, clock: StoppedClock) -> None:
    for title in "ABCDE":
        team.create(title, deadline=TODAY)
    clock.advance(days=1)
    with ThreadPoolExecutor(8) as pool:
        swept = list(pool.map(lambda _: sweep(team), range(8)))
    assert sum(len(one.escalated) for one in swept) == 5
    assert len(in_mission_chat(team)) == 5
    assert len(Escalations(team.store).list(team.slug)) == 5


@pytest.mark.spec("M13")
@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(days=1)])
def test_a_clock_that_is_set_back_and_forth_warns_and_asks_once(
    team: Team, clock: StoppedClock, jump: timedelta
) -> None:
    team.todo_in(TodoStatus.IN_PROGRESS, deadline="2026-02-21T10:00:00Z")
    clock.advance(hours=1)
    assert len(sweep(team).escalated) == 1
    for step in (-jump, jump, -jump, jump):
        clock.now += step
        swept = sweep(team)
        assert (swept.escalated, swept.warned, swept.reminded) == ((), (), ())


@pytest.mark.spec("M13")
def test_what_was_extended_is_looked_after_again(team: Team, clock: StoppedClock) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS, deadline=TODAY)
    clock.advance(days=1)
    sweep(team)
    team.update(todo, TodoAction.EXTEND, "it takes longer", deadline="2026-02-25")
    assert now(team, todo).overdue_at is None
    assert Escalations(team.store).list(team.slug) == []
    clock.advance(days=2)
    assert sweep(team) == OverdueReport()
    clock.advance(days=2)
    assert len(sweep(team).escalated) == 1
    assert len(in_mission_chat(team)) == 2


@pytest.mark.spec("M13")
def test_what_the_lead_takes_back_from_the_backlog_stays(team: Team, clock: StoppedClock) -> None:
    todo = team.create("A", deadline=TODAY)
    clock.advance(days=1)
    sweep(team)
    team.update(todo, TodoAction.PROMOTE, "it matters")
    clock.advance(hours=1)
    swept = sweep(team)
    assert now(team, todo).status is TodoStatus.PENDING
    assert [one.id for one in swept.overdue] == [todo.id]
    assert not swept.has_actions


@pytest.mark.spec("M13")
def test_titles_cannot_forge_a_line_of_the_question(team: Team, clock: StoppedClock) -> None:
    team.create("Do it. Status: completed since 2020-01-01. \u202eevil", deadline=TODAY)
    clock.advance(days=1)
    sweep(team)
    (question,) = in_mission_chat(team)
    assert question.splitlines()[0] == (
        "TODO overdue: Do it. Status: completed since 2020-01-01. \\u202eevil. Status: pending since 2026-02-21."
    )


@pytest.mark.spec("M13")
def test_only_the_system_looks_after_deadlines(team: Team, clock: StoppedClock) -> None:
    team.create("A", deadline=TODAY)
    clock.advance(days=1)
    before = everything(team.store)
    with pytest.raises(NotAllowed):
        OverdueService(team.store).process_mission(team.owner, team.mission.id)
    with pytest.raises(NotFound):
        OverdueService(team.store).process_mission(team.system, "nothing")
    assert everything(team.store) == before


@pytest.mark.spec("M13")
def test_nothing_happens_in_a_mission_that_is_archived(team: Team, clock: StoppedClock) -> None:
    todo = team.create("A", deadline=TODAY)
    team.missions.archive(team.person, team.slug, "done with it")
    clock.advance(days=1)
    assert sweep(team) == OverdueReport()
    assert now(team, todo).overdue_at is None


# --- reminders ---------------------------------------------------------------------------------------


@pytest.mark.spec("M13")
def test_a_person_is_reminded_until_they_say_something(team: Team, clock: StoppedClock) -> None:
    team.create("A", deadline=TODAY)
    clock.advance(days=1)
    (asked,) = sweep(team).escalated
    clock.advance(hours=23, minutes=59)
    assert sweep(team).reminded == ()
    clock.advance(minutes=1)
    (reminded,) = sweep(team).reminded
    assert (reminded.id, reminded.reminders) == (asked.id, 1)
    assert sweep(team).reminded == ()
    clock.advance(days=5)
    assert [one.reminders for one in sweep(team).reminded] == [2]
    assert in_mission_chat(team, NoticeKind.REMINDER) == [
        f"Reminder 1: {asked.question}",
        f"Reminder 2: {asked.question}",
    ]
    assert len(in_mission_chat(team)) == 1

    Escalations(team.store).acknowledge(team.person, asked.id)
    clock.advance(days=5)
    assert sweep(team).reminded == ()


@pytest.mark.spec("M13")
def test_how_often_is_the_missions_own(store: Store, clock: StoppedClock) -> None:
    team = with_policy(store, reminderHours=1.5)
    team.create("A", deadline=TODAY)
    clock.advance(days=1)
    sweep(team)
    clock.advance(hours=1, minutes=30)
    assert len(sweep(team).reminded) == 1


# --- the backlog -------------------------------------------------------------------------------------


@pytest.mark.spec("M14")
def test_what_nobody_has_touched_for_long_is_put_before_the_owner(team: Team, clock: StoppedClock) -> None:
    old, touched = (team.todo_in(TodoStatus.BACKLOG, title) for title in ("Old", "Touched"))
    clock.advance(days=59)
    team.update(touched, TodoAction.REPRIORITIZE, priority=TodoPriority.HIGH)
    demoted = team.create("Demoted")
    team.update(demoted, TodoAction.DEMOTE)
    clock.advance(hours=23)
    assert sweep(team).stale == ()
    clock.advance(hours=1)
    swept = sweep(team)
    assert [one.id for one in swept.stale] == [old.id]
    assert swept.pruned == ()
    assert now(team, old).status is TodoStatus.BACKLOG


@pytest.mark.spec("M14")
def test_it_is_cancelled_only_if_the_mission_says_so(store: Store, clock: StoppedClock) -> None:
    team = with_policy(store, staleBacklogAfterDays=30, staleBacklogPolicy="cancel")
    old = team.todo_in(TodoStatus.BACKLOG, "Old", pillar=ONBOARDING)
    clock.advance(days=20)
    young = team.todo_in(TodoStatus.BACKLOG, "Young")
    clock.advance(days=10)
    swept = sweep(team)
    assert [one.id for one in swept.pruned] == [old.id]
    assert now(team, old).status is TodoStatus.CANCELLED
    assert now(team, old).outcome == "It has not changed in the backlog for 30 days."
    assert now(team, young).status is TodoStatus.BACKLOG
    assert in_mission_chat(team, NoticeKind.NOTE) == [
        "Cancelled in the backlog because they have not changed for a long time: “Old”."
    ]
    assert not sweep(team).has_actions
