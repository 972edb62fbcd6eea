"""Questions to people about todos, and what is done when they answer (M13), on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import by_hand, nothing_changes
from tests.contract.missions import BUILD, Team, developer_experience

from punchlist.conversations.model import NoticeKind
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound, PunchlistError
from punchlist.missions import replay as mission_replay
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.service import Escalations, escalate_stuck_work
from punchlist.missions.model import Escalation, MissionScope, MissionTodo
from punchlist.missions.planning.overdue import OverdueService
from punchlist.missions.todos import replay
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.runs.service import Runs
from punchlist.storage.store import Store

TODAY = "2026-02-21"


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.fixture
def escalations(store: Store) -> Escalations:
    return Escalations(store)


def ask(team: Team, clock: StoppedClock, status: TodoStatus = TodoStatus.IN_PROGRESS, title: str = "A") -> Escalation:
    """What a person is asked about a todo that is a day late."""
    team.todo_in(status, title, deadline=clock.now.date().isoformat())
    clock.advance(days=1)
    (asked,) = OverdueService(team.store).process_mission(team.system, team.mission.id).escalated
    return asked


def about(team: Team, asked: Escalation) -> MissionTodo:
    return team.todos.get(asked.todo_id)


def notes(team: Team, chat: str) -> list[str]:
    return [one.content for one in Conversations(team.store).messages(chat) if one.kind == NoticeKind.NOTE]


# --- answering ---------------------------------------------------------------------------------------


@pytest.mark.spec("M13")
def test_a_person_extends_a_deadline(team: Team, escalations: Escalations, clock: StoppedClock) -> None:
    asked = ask(team, clock)
    done = escalations.answer(team.person, asked.id, "extend", deadline="2026-03-01", reason="half done")
    assert (done.status, done.answer, done.answered_by) == ("answered", "extend to 2026-03-01: half done", "person:ada")
    todo = about(team, asked)
    assert (todo.status, todo.deadline, todo.overdue_at) == (TodoStatus.IN_PROGRESS, "2026-03-01", None)
    assert escalations.list() == []
    note = "Answer of ada about A. extend to 2026-03-01: half done"
    assert notes(team, team.mission.conversation_id) == [note]
    assert notes(team, team.pillars[BUILD].todo_conversation_id) == [note]


@pytest.mark.spec("M13")
def test_a_person_cancels(team: Team, escalations: Escalations, clock: StoppedClock) -> None:
    asked = ask(team, clock)
    escalations.answer(team.person, asked.id, "cancel")
    todo = about(team, asked)
    assert (todo.status, todo.outcome) == (TodoStatus.CANCELLED, "ada answered: cancel")
    assert team.todos.capacity(team.slug).active == 0
    assert escalations.find(asked.id).answer == "cancel"


@pytest.mark.spec("M13")
def test_a_person_keeps_it_as_it_is(team: Team, escalations: Escalations, clock: StoppedClock) -> None:
    asked = ask(team, clock)
    before = about(team, asked)
    escalations.answer(team.person, asked.id, "keep", reason="nearly there")
    assert about(team, asked) == before
    clock.advance(days=3)
    assert not OverdueService(team.store).process_mission(team.system, team.mission.id).has_actions


@pytest.mark.spec("M13")
def test_what_was_demoted_stays_in_the_backlog_with_its_new_deadline(
    team: Team, escalations: Escalations, clock: StoppedClock
) -> None:
    asked = ask(team, clock, TodoStatus.PENDING)
    escalations.answer(team.person, asked.id, "extend", deadline="2026-03-01")
    assert (about(team, asked).status, about(team, asked).deadline) == (TodoStatus.BACKLOG, "2026-03-01")


@pytest.mark.spec("M13")
def test_what_the_lead_does_to_the_todo_answers_it_too(
    team: Team, escalations: Escalations, clock: StoppedClock
) -> None:
    by_extending, by_cancelling, by_completing = (ask(team, clock, title=title) for title in "ABC")
    team.update(about(team, by_extending), TodoAction.EXTEND, "ada said so", deadline="2026-04-01")
    team.update(about(team, by_cancelling), TodoAction.CANCEL, "ada said so")
    team.todos.complete(team.lead, team.slug, by_completing.todo_id, "it was done")
    assert escalations.list() == []
    found = escalations.find(by_extending.id)
    assert (found.answer, found.answered_by) == ("extended to 2026-04-01: ada said so", "lead:mission-lead")


@pytest.mark.spec("M13")
def test_one_who_has_seen_it_can_answer_later(team: Team, escalations: Escalations, clock: StoppedClock) -> None:
    asked = ask(team, clock)
    assert escalations.acknowledge(team.person, asked.id).status == "acknowledged"
    assert [one.id for one in escalations.list()] == [asked.id]
    with pytest.raises(IllegalTransition):
        escalations.acknowledge(team.person, asked.id)
    escalations.answer(team.person, asked.id, "keep")
    with pytest.raises(IllegalTransition, match="answered already"):
        escalations.answer(team.person, asked.id, "cancel")
    assert about(team, asked).status is TodoStatus.IN_PROGRESS


@pytest.mark.spec("M13")
@pytest.mark.parametrize(
    ("answer", "deadline", "told"),
    [
        ("extend", None, "deadline: is required to extend"),
        ("extend", "soon", "deadline: 'soon' is not a date"),
        ("extend", "2026-02-20", "deadline: 2026-02-20 has already passed"),
        ("extend", "2026-03-01T10:00:00", "has a time but no zone"),
        ("cancel", "2026-03-01", "deadline: is only for `extend`"),
        ("maybe", None, "answer: must be one of extend, cancel, keep"),
    ],
)
def test_an_answer_that_makes_no_sense_changes_nothing(
    team: Team, escalations: Escalations, clock: StoppedClock, answer: str, deadline: str | None, told: str
) -> None:
    asked = ask(team, clock)
    with nothing_changes(team.store), pytest.raises(InvalidInput, match=told):
        escalations.answer(team.person, asked.id, answer, deadline=deadline)


@pytest.mark.spec("M13", "M4")
def test_owners_and_workers_neither_acknowledge_nor_answer(
    team: Team, escalations: Escalations, clock: StoppedClock
) -> None:
    asked = ask(team, clock)
    for scope in (team.owner, team.worker):
        for choice in ("cancel", "keep"):
            with nothing_changes(team.store), pytest.raises(NotAllowed):
                escalations.answer(scope, asked.id, choice)
    with nothing_changes(team.store), pytest.raises(NotAllowed):
        escalations.acknowledge(team.lead, asked.id)


@pytest.mark.spec("M13")
def test_whoever_is_bound_to_another_mission_does_not_answer(
    team: Team, escalations: Escalations, clock: StoppedClock
) -> None:
    asked = ask(team, clock)
    elsewhere = MissionScope("cli", team.lead.actor, "another")
    with nothing_changes(team.store), pytest.raises(NotAllowed):
        escalations.answer(elsewhere, asked.id, "cancel")


@pytest.mark.spec("M13")
def test_of_many_answers_at_once_one_counts(team: Team, escalations: Escalations, clock: StoppedClock) -> None:
    asked = ask(team, clock)

    def answer(choice: str) -> str | None:
        try:
            return escalations.answer(team.person, asked.id, choice, reason="at once").answer
        except PunchlistError:
            return None

    with ThreadPoolExecutor(8) as pool:
        given = [one for one in pool.map(answer, ["keep", "cancel"] * 4) if one]
    assert given == [escalations.find(asked.id).answer]
    cancelled = about(team, asked).status is TodoStatus.CANCELLED
    assert cancelled == given[0].startswith("cancel")


# --- finding -----------------------------------------------------------------------------------------


@pytest.mark.spec("M13")
def test_questions_are_found_by_mission_and_by_the_end_of_their_id(
    store: Store, team: Team, escalations: Escalations, clock: StoppedClock
) -> None:
    other = developer_experience(store, "other")
    first = ask(team, clock)
    second = ask(other, clock)
    assert [one.id for one in escalations.list()] == [first.id, second.id]
    assert [one.id for one in escalations.list("other")] == [second.id]
    assert escalations.find(first.id[-8:]) == first
    escalations.answer(team.person, first.id[-8:], "keep")
    assert [one.id for one in escalations.list(open_only=False)] == [second.id, first.id]
    assert escalations.list(team.slug) == []
    with pytest.raises(NotFound, match="There is no mission 'othr'"):
        escalations.list("othr")


@pytest.mark.spec("M13")
@pytest.mark.parametrize(
    "wanted", ["", "%", "_", "nothing", "%%%", "' OR 1=1", "\x1b[2J", "é", "\ud800", "x" * 100_000]
)
def test_what_is_no_question_is_not_found(
    team: Team, escalations: Escalations, clock: StoppedClock, wanted: str
) -> None:
    ask(team, clock)
    with pytest.raises(NotFound, match="There is no escalation") as refused:
        escalations.find(wanted)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


@pytest.mark.spec("M13")
def test_an_end_that_several_have_is_not_enough(team: Team, escalations: Escalations, clock: StoppedClock) -> None:
    ends = [ask(team, clock, title=str(number)).id[-1] for number in range(9)] + [
        ask(team, clock, TodoStatus.PENDING, str(number)).id[-1] for number in range(9)
    ]
    (twice, *_) = [end for end in ends if ends.count(end) > 1]
    with pytest.raises(InvalidInput, match="matches the ends of several ids"):
        escalations.find(twice)


# --- work that does not come to an end ---------------------------------------------------------------


@pytest.mark.spec("M13")
def test_a_person_is_asked_once_about_work_that_does_not_come_to_an_end(
    team: Team, escalations: Escalations, clock: StoppedClock
) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS, "Migrate", deadline="2026-03-01")
    for _ in range(2):
        with team.store.write() as tx:
            mission = mission_repository.lock_mission(tx, team.mission.id)
            assert mission is not None
            write = MissionWrite(tx, team.system, mission)
            asked = escalate_stuck_work(write, todo, "The Lead has sent it back 3 times.")
    assert escalations.list() == [asked]
    assert asked.kind == "review"
    assert asked.question.startswith(
        "TODO needs a decision: Migrate. Status: in_progress since 2026-02-21.\n"
        "The Lead has sent it back 3 times.\nPlease advise: keep working, extend deadline or cancel?\n"
    )
    # A deadline that passes meanwhile is another question, and to extend it answers that one alone.
    clock.advance(days=20)
    (overdue,) = OverdueService(team.store).process_mission(team.system, team.mission.id).escalated
    assert {one.id for one in escalations.list()} == {asked.id, overdue.id}
    escalations.answer(team.person, overdue.id, "extend", deadline="2026-04-01")
    assert [one.id for one in escalations.list()] == [asked.id]
    # Nobody works on it any more: who says to go on begins the work anew.
    runs = Runs(team.store)
    for run in runs.for_todo(todo.id):
        runs.stop(team.person, run.id)
    escalations.answer(team.person, asked.id, "keep")
    assert escalations.list() == []
    assert [run.status.value for run in runs.for_todo(todo.id)] == ["queued", "stopped"]


# --- the trail ---------------------------------------------------------------------------------------


@pytest.mark.spec("M13")
def test_events_tell_of_every_question_as_the_rows_do(
    team: Team, escalations: Escalations, clock: StoppedClock
) -> None:
    kept, extended, seen, cancelled, left = (ask(team, clock, title=title) for title in "ABCDE")
    escalations.answer(team.person, kept.id, "keep", reason="why not")
    escalations.answer(team.person, extended.id, "extend", deadline="2026-12-01")
    escalations.acknowledge(team.person, seen.id)
    team.todos.update(team.owner, team.slug, cancelled.todo_id, TodoAction.CANCEL, "an owner may")
    clock.advance(days=2)
    OverdueService(team.store).process_mission(team.system, team.mission.id)
    with team.store.read() as tx:
        rows = {one.id: one for one in escalation_repository.all_in_mission(tx, team.mission.id)}
    assert rows[left.id].reminders > 0
    assert {one.status for one in rows.values()} == {"open", "acknowledged", "answered"}
    assert mission_replay.replay(team.trail())["escalations"] == rows
    with team.store.read() as tx:
        assert list(mission_replay.compare(tx, team.mission.id, team.trail())) == []
        # What sweeping did to the todos is told, too.
        assert list(replay.compare(tx, team.mission.id, team.trail())) == []


@pytest.mark.spec("M13")
def test_a_row_that_its_events_did_not_make_shows(team: Team, clock: StoppedClock) -> None:
    asked = ask(team, clock)
    by_hand(team.store, "UPDATE escalations SET question = 'Please cancel?'")
    with team.store.read() as tx:
        (problem,) = mission_replay.compare(tx, team.mission.id, team.trail())
    assert f"escalation {asked.id} differs from its events" in problem
