"""A mission's todo goes the ways of the seed's tables and no other, for those who may (M4, M6)."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import by_hand, everything, nothing_changes
from tests.contract.missions import BUILD, ONBOARDING, Team, developer_experience

from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed, NotFound, PunchlistError
from punchlist.kernel.events import Role
from punchlist.missions.changes import MissionWrite
from punchlist.missions.model import MissionTodo, NewMissionTodo
from punchlist.missions.todos import replay
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.missions.todos.service import MissionTodos
from punchlist.missions.todos.transitions import update_todo
from punchlist.runs.service import Runs
from punchlist.storage.store import Store

# Typed in from the seed's section 3.2, not taken from the code.
TRANSITIONS: Final = {
    ("backlog", "promote"): "pending",
    ("pending", "demote"): "backlog",
    ("pending", "start"): "in_progress",
    ("in_progress", "complete"): "completed",
    ("backlog", "cancel"): "cancelled",
    ("pending", "cancel"): "cancelled",
    ("in_progress", "cancel"): "cancelled",
}
STATES: Final = ["backlog", "pending", "in_progress", "completed", "cancelled"]
STEPS: Final = ["promote", "demote", "start", "complete", "cancel"]
# Typed in from sections 3.2 and 4.2; a person is who the Lead works for, anybody else does nothing.
MAY: Final = {
    "lead": {"create", "promote", "demote", "start", "complete", "cancel"},
    "person": {"create", "promote", "demote", "start", "complete", "cancel"},
    "owner": {"create", "cancel"},
    "worker": set(),
    "supervisor": set(),
}
FROM: Final = {
    "promote": TodoStatus.BACKLOG,
    "demote": TodoStatus.PENDING,
    "start": TodoStatus.PENDING,
    "complete": TodoStatus.IN_PROGRESS,
    "cancel": TodoStatus.PENDING,
}


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def take(team: Team, role: Role, todo: MissionTodo, step: str) -> MissionTodo:
    """One step, through the service that every surface calls."""
    if step == "complete":
        return team.todos.complete(team.scope(role), team.slug, todo.id, "done").todo
    return team.todos.update(team.scope(role), team.slug, todo.id, TodoAction(step), "a test").todo


@pytest.mark.spec("M4", "M6")
@pytest.mark.parametrize("step", STEPS)
def test_each_step_leads_from_where_the_seed_says_to_where_it_says(store: Store, team: Team, step: str) -> None:
    for state in STATES:
        todo = team.todo_in(TodoStatus(state))
        if (state, step) in TRANSITIONS:
            assert take(team, Role.LEAD, todo, step).status == TRANSITIONS[state, step]
            assert team.todos.get(todo.id).status == TRANSITIONS[state, step]
        else:
            with nothing_changes(store), pytest.raises(IllegalTransition, match=f"Cannot {step} .* that is {state}"):
                take(team, Role.LEAD, todo, step)


@pytest.mark.spec("M4", "M6")
@pytest.mark.parametrize("role", MAY)
def test_each_role_may_do_what_the_seed_says_and_no_more(team: Team, role: str) -> None:
    scope = team.scope(Role(role))
    for step, state in FROM.items():
        todo = team.todo_in(state)
        if step in MAY[role]:
            assert take(team, scope.actor.role, todo, step).status == TRANSITIONS[state, step]
        else:
            with pytest.raises(NotAllowed):
                take(team, scope.actor.role, todo, step)
            assert team.todos.get(todo.id) == todo
    made = len(team.todos.list(team.slug).items)
    if "create" in MAY[role]:
        assert team.todos.create(scope, team.slug, NewMissionTodo(BUILD, "A")).todo.status == "pending"
    else:
        with pytest.raises(NotAllowed):
            team.todos.create(scope, team.slug, NewMissionTodo(BUILD, "A"))
    assert len(team.todos.list(team.slug).items) == made + ("create" in MAY[role])


@pytest.mark.spec("M4")
@pytest.mark.parametrize("step", ["promote", "demote"])
def test_what_an_owner_would_promote_or_demote_is_recommended_to_the_lead(store: Store, team: Team, step: str) -> None:
    todo = team.todo_in(FROM[step], "Profile the build")
    with pytest.raises(NotAllowed, match=r"the Lead decides. It was posted to the mission chat as a recommendation"):
        team.todos.update(team.owner, team.slug, todo.id, TodoAction(step), "Builds got slower.")
    (message,) = Conversations(store).messages(team.mission.conversation_id)
    assert message.kind == "recommendation"
    assert f"The owner of Build Performance recommends to {step} “Profile the build”" in message.content
    assert "Builds got slower." in message.content
    assert team.todos.get(todo.id) == todo


@pytest.mark.spec("M4")
def test_no_recommendation_is_made_of_what_cannot_be_or_is_not_the_owners(store: Store, team: Team) -> None:
    pending, theirs = team.todo_in(TodoStatus.PENDING), team.todo_in(TodoStatus.BACKLOG)
    bad: list[tuple[MissionTodo, TodoAction, type[PunchlistError], str]] = [
        (pending, TodoAction.PROMOTE, NotAllowed, "It is pending, so this was not possible anyway"),
        (theirs._replace(id="nothing"), TodoAction.PROMOTE, NotFound, "'nothing' is not in mission"),
    ]
    with nothing_changes(store):
        for todo, action, error, words in bad:
            with pytest.raises(error, match=words):
                team.todos.update(team.owner, team.slug, todo.id, action, "why")
        with pytest.raises(NotAllowed, match="You act in pillar 'onboarding' only"):
            team.todos.update(team.other_owner, team.slug, theirs.id, TodoAction.PROMOTE, "why")


@pytest.mark.spec("M4")
def test_whoever_is_bound_to_a_mission_or_pillar_acts_nowhere_else(store: Store, team: Team) -> None:
    other = developer_experience(store, "another-mission")
    mine, theirs = team.create(), other.create()
    with nothing_changes(store):
        for words, scope, slug, pillar, todo in [
            ("You act in mission 'developer-experience' only", team.lead, other.slug, BUILD, theirs),
            ("You act in mission 'developer-experience' only", team.owner, other.slug, BUILD, theirs),
            ("You act in pillar 'onboarding' only", team.other_owner, team.slug, BUILD, mine),
        ]:
            with pytest.raises(NotAllowed, match=words):
                team.todos.create(scope, slug, NewMissionTodo(pillar, "A"))
            with pytest.raises(NotAllowed, match=words):
                team.todos.update(scope, slug, todo.id, TodoAction.CANCEL, "mine now")
        # Naming one's own mission does not help.
        with pytest.raises(NotFound, match="belongs to another mission"):
            team.todos.update(team.lead, team.slug, theirs.id, TodoAction.CANCEL, "mine now")
        with pytest.raises(NotFound, match="belongs to another mission"):
            team.todos.complete(team.lead, team.slug, theirs.id, "done")
    assert (
        team.todos.update(team.person, other.slug, theirs.id, TodoAction.CANCEL, "a person may").todo.status
        == "cancelled"
    )
    assert team.todos.create(team.other_owner, team.slug, NewMissionTodo(ONBOARDING, "A")).todo.status == "pending"


@pytest.mark.spec("M8")
def test_a_start_sets_the_time_and_queues_a_run_in_the_pillars_todo_chat(
    store: Store, team: Team, clock: StoppedClock
) -> None:
    todo = team.create("Profile the build")
    clock.advance(minutes=5)
    done = team.todos.update(team.lead, team.slug, todo.id, TodoAction.START, "It got slower.")
    assert (done.todo.status, done.todo.started_at) == ("in_progress", "2026-02-21T09:05:00.000000Z")
    (run,) = Runs(store).list()
    assert (run.id, run.kind, run.status, run.agent) == (done.run_id, "execute", "queued", "pillar-owner")
    assert run.parameters == {"todoId": todo.id, "title": "Profile the build"}
    assert (run.mission_id, run.pillar_id, run.todo_id) == (team.mission.id, todo.pillar_id, todo.id)
    assert run.conversation_id == team.pillars[BUILD].todo_conversation_id
    assert Conversations(store).messages(run.conversation_id) == []


@pytest.mark.spec("M4")
def test_whoever_cancels_says_why_and_the_run_is_stopped(store: Store, team: Team) -> None:
    for scope in (team.lead, team.owner, team.system):
        todo = team.todo_in(TodoStatus.IN_PROGRESS)
        with nothing_changes(store), pytest.raises(InvalidInput, match=r"^reason: must be 1 to 2000 characters"):
            team.todos.update(scope, team.slug, todo.id, TodoAction.CANCEL, "  ")
        cancelled = team.todos.update(scope, team.slug, todo.id, TodoAction.CANCEL, "No longer needed.").todo
        assert (cancelled.outcome, cancelled.ended_at, cancelled.completed_at) == (
            "No longer needed.",
            "2026-02-21T09:00:00.000000Z",
            None,
        )
        (run,) = Runs(store).for_todo(todo.id)
        assert run.status == "stopped"
        assert "No longer needed." in run.why


@pytest.mark.spec("M6", "M8")
def test_completion_keeps_outcome_and_time_and_leaves_the_run_alone(
    store: Store, team: Team, clock: StoppedClock
) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    clock.advance(hours=1)
    done = team.todos.complete(team.lead, team.slug, todo.id, " It was\nts-loader. ").todo
    assert (done.status, done.outcome) == ("completed", "It was\nts-loader.")
    assert done.completed_at == done.ended_at == "2026-02-21T10:00:00.000000Z"
    assert [run.status for run in Runs(store).for_todo(todo.id)] == ["queued"]
    assert team.todos.capacity(team.slug).active == 0


@pytest.mark.spec("M6")
def test_an_outcome_is_required_and_is_no_longer_than_allowed(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    with nothing_changes(store):
        for outcome in ("", "  \n", "x" * 20_001, "a\x1b[2Jb"):
            with pytest.raises(InvalidInput, match=r"^outcome: must"):
                team.todos.complete(team.lead, team.slug, todo.id, outcome)
    assert team.todos.complete(team.lead, team.slug, todo.id, "x" * 20_000).todo.status == "completed"


@pytest.mark.spec("M6")
def test_the_system_does_not_call_anything_done(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    with nothing_changes(store), pytest.raises(NotAllowed, match="A system may not complete a mission todo"):
        team.todos.complete(team.system, team.slug, todo.id, "done")


@pytest.mark.spec("M6")
def test_metrics_that_were_impacted_are_collected_again_by_one_run(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    with nothing_changes(store), pytest.raises(InvalidInput) as refused:
        team.todos.complete(
            team.lead, team.slug, todo.id, "done", metrics_impacted=["local-build-time", "build-time", "\x00"]
        )
    assert refused.value.problems == [
        "metricsImpacted[1]: mission 'developer-experience' has no metric 'build-time'. "
        "Did you mean local-build-time? Available: local-build-time, cache-hit-rate.",
        "metricsImpacted[2]: mission 'developer-experience' has no metric '\\\\x00'. "
        "Available: local-build-time, cache-hit-rate.",
    ]
    slugs = ["cache-hit-rate", "local-build-time", "cache-hit-rate"]
    done = team.todos.complete(team.lead, team.slug, todo.id, "done", metrics_impacted=slugs)
    (run,) = [run for run in Runs(store).list() if run.kind == "collect"]
    assert (run.id, run.agent, run.conversation_id) == (done.run_id, "collector", team.mission.conversation_id)
    assert run.parameters == {"metrics": ["cache-hit-rate", "local-build-time"]}
    assert team.trail()[-1].payload()["metrics_impacted"] == ["cache-hit-rate", "local-build-time"]


@pytest.mark.spec("M16")
def test_a_check_must_have_passed_since_the_last_work(store: Store, team: Team, clock: StoppedClock) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS, check={"name": "tests"})

    def refused(words: str) -> None:
        with nothing_changes(store), pytest.raises(IllegalTransition, match=f"{words}.*overrideReason"):
            team.todos.complete(team.lead, team.slug, todo.id, "done")

    refused("its check has not been run")
    team.todos.record_check(team.lead, todo.id, False, "2 tests failed\x1b[0m")
    refused(r"its check failed at 2026-02-21T09:00:00.000000Z: 2 tests failed")
    team.todos.record_check(team.system, todo.id, True)
    clock.advance(seconds=1)
    team.todos.record_work(team.owner, todo.id)
    refused("it was worked on after its check passed at 2026-02-21T09:00:00.000000Z")
    team.todos.record_check(team.lead, todo.id, True)
    done = team.todos.complete(team.lead, team.slug, todo.id, "done", override_reason="not needed").todo
    assert (done.status, done.override_reason) == ("completed", None)


@pytest.mark.spec("M16")
def test_the_lead_can_override_a_check_with_a_reason_that_is_kept(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS, check={"metric": "local-build-time", "atMost": 60})
    with nothing_changes(store), pytest.raises(InvalidInput, match=r"^overrideReason: must be 1 to 2000"):
        team.todos.complete(team.lead, team.slug, todo.id, "done", override_reason=" ")
    done = team.todos.complete(team.lead, team.slug, todo.id, "done", override_reason="The sensor broke.").todo
    assert (done.status, done.override_reason) == ("completed", "The sensor broke.")
    assert team.trail()[-1].payload()["override_reason"] == "The sensor broke."


@pytest.mark.spec("M16")
def test_whoever_did_the_work_does_not_say_whether_its_check_passed(store: Store, team: Team) -> None:
    todo, plain = team.todo_in(TodoStatus.IN_PROGRESS, check={"name": "tests"}), team.todo_in(TodoStatus.IN_PROGRESS)
    with nothing_changes(store):
        for scope in (team.owner, team.worker):
            with pytest.raises(NotAllowed, match="may not record the result"):
                team.todos.record_check(scope, todo.id, True)
        with pytest.raises(IllegalTransition, match="has no check"):
            team.todos.record_check(team.lead, plain.id, True)
        with pytest.raises(NotAllowed):
            team.todos.record_work(team.worker, todo.id)
        with pytest.raises(NotAllowed, match="You act in pillar 'onboarding' only"):
            team.todos.record_work(team.other_owner, todo.id)


@pytest.mark.spec("M13")
def test_an_extension_needs_a_day_to_come_and_ends_being_overdue(store: Store, team: Team, clock: StoppedClock) -> None:
    todo = team.create(deadline="2026-02-22")
    clock.advance(days=3)
    with store.write() as tx:
        todo = update_todo(MissionWrite(tx, team.system, team.mission), "overdue", todo, "late", overdue_at=tx.now())
    escalate(store, team, todo)
    with nothing_changes(store):
        for deadline, words in [
            ("2026-02-23", "deadline: 2026-02-23 has already passed; give one in the future"),
            ("soon", "deadline: 'soon' is not a date"),
        ]:
            with pytest.raises(InvalidInput, match=words):
                team.update(todo, TodoAction.EXTEND, deadline=deadline)
        with pytest.raises(InvalidInput, match=r"^deadline: is required to extend"):
            team.update(todo, TodoAction.EXTEND)
        with pytest.raises(InvalidInput, match=r"^deadline: is only for extend; leave it out to promote"):
            team.update(todo, TodoAction.PROMOTE, deadline="2026-03-01")
    extended = team.update(todo, TodoAction.EXTEND, "It is harder.", deadline="2026-03-01")
    assert (extended.deadline, extended.overdue_at, extended.status) == ("2026-03-01", None, "pending")
    assert answered(store) == [("answered", "extended to 2026-03-01: It is harder.", "lead:mission-lead")]


@pytest.mark.spec("M13")
@pytest.mark.parametrize("how", ["complete", "lead cancels", "owner cancels"])
def test_the_end_of_a_todo_answers_what_is_asked_about_it_and_frees_its_claim(
    store: Store, team: Team, how: str
) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    escalate(store, team, todo)
    by_hand(
        store,
        "INSERT INTO claims (todo_id, list, owner_id, holder, fence, claimed_at, lease_until) "
        "VALUES (:todo, 'mission', :mission, 'worker:1', 1, '2026', '2027')",
        todo=todo.id,
        mission=todo.mission_id,
    )
    scope = team.owner if how == "owner cancels" else team.lead
    if how == "complete":
        team.todos.complete(scope, team.slug, todo.id, "done")
    else:
        team.todos.update(scope, team.slug, todo.id, TodoAction.CANCEL, "done")
    answer = "completed: done" if how == "complete" else "cancelled: done"
    assert answered(store) == [("answered", answer, str(scope.actor))]
    assert [row[3] for row in everything(store)["claims"]] == [None]
    ending = next(
        event for event in team.trail() if event.subject == todo.id and event.to_status in ("completed", "cancelled")
    )
    assert ending.payload()["claim"] == {"holder": "worker:1", "fence": 1}


def escalate(store: Store, team: Team, todo: MissionTodo) -> None:
    by_hand(
        store,
        "INSERT INTO escalations (id, mission_id, todo_id, kind, question, status, asked_at) "
        "VALUES ('e', :mission, :todo, 'overdue', 'Extend or cancel?', 'open', '2026-02-21T09:00:00.000000Z')",
        mission=team.mission.id,
        todo=todo.id,
    )


def answered(store: Store) -> list[tuple[str, str, str]]:
    return [(row[5], row[9], row[10]) for row in everything(store)["escalations"]]


@pytest.mark.spec("M5")
def test_a_todo_can_be_reprioritized_while_it_is_open(store: Store, team: Team) -> None:
    for state in (TodoStatus.BACKLOG, TodoStatus.PENDING, TodoStatus.IN_PROGRESS):
        todo = team.todo_in(state)
        changed = team.update(todo, TodoAction.REPRIORITIZE, priority=TodoPriority.CRITICAL)
        assert (changed.priority, changed.status) == ("critical", state)
    ended = team.todo_in(TodoStatus.CANCELLED)
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match="that is cancelled"):
            team.update(ended, TodoAction.REPRIORITIZE, priority=TodoPriority.LOW)
        with pytest.raises(InvalidInput, match=r"^priority: is required to reprioritize"):
            team.update(ended, TodoAction.REPRIORITIZE)
        with pytest.raises(NotAllowed):
            team.todos.update(team.owner, team.slug, ended.id, TodoAction.REPRIORITIZE, "me", priority=TodoPriority.LOW)


@pytest.mark.spec("M5")
def test_only_what_an_update_is_for_can_be_done_by_one(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    with nothing_changes(store):
        for action in (TodoAction.CREATE, TodoAction.SHELVE, TodoAction.COMPLETE):
            with pytest.raises(InvalidInput, match=r"^action: must be one of promote, demote, start, cancel"):
                team.update(todo, action)


@pytest.mark.spec("M8")
def test_an_owner_reports_to_the_todo_chat(store: Store, team: Team, clock: StoppedClock) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    clock.advance(minutes=1)
    done = team.todos.report(team.owner, team.slug, todo.id, " It is ts-loader. ")
    assert done.todo.worked_at == "2026-02-21T09:01:00.000000Z"
    (message,) = Conversations(store).messages(team.pillars[BUILD].todo_conversation_id)
    assert (message.kind, message.content) == ("todo_result", f"[TODO {todo.id}]\n> It is ts-loader.")
    with nothing_changes(store):
        with pytest.raises(NotAllowed):
            team.todos.report(team.worker, team.slug, todo.id, "done")
        with pytest.raises(NotAllowed, match="pillar 'onboarding' only"):
            team.todos.report(team.other_owner, team.slug, todo.id, "done")
        with pytest.raises(InvalidInput, match=r"^result: must be 1 to 20000"):
            team.todos.report(team.owner, team.slug, todo.id, " ")
    pending = team.create()
    with (
        nothing_changes(store),
        pytest.raises(IllegalTransition, match="is pending; a report needs a todo in progress"),
    ):
        team.todos.report(team.owner, team.slug, pending.id, "done")


@pytest.mark.spec("M4", "X5")
def test_every_change_has_who_when_and_why_and_the_rows_can_be_told_from_them(
    store: Store, team: Team, clock: StoppedClock
) -> None:
    todo = team.create("A", justification="It is slow.", also_affects=(ONBOARDING,), check={"name": "tests"})
    for action in (TodoAction.DEMOTE, TodoAction.PROMOTE, TodoAction.START):
        clock.advance(seconds=1)
        team.update(todo, action, f"to {action}")
    team.todos.record_work(team.owner, todo.id)
    team.todos.record_check(team.lead, todo.id, True, "all green")
    team.update(todo, TodoAction.EXTEND, "more time", deadline="2026-04-01")
    team.todos.complete(team.person, team.slug, todo.id, "It is fast.")
    team.todo_in(TodoStatus.CANCELLED)
    steps = [(e.actor, e.action, e.from_status, e.to_status, e.reason) for e in team.trail() if e.subject == todo.id]
    lead = "lead:mission-lead"
    assert steps == [
        (lead, "create", None, "pending", "It is slow."),
        (lead, "demote", "pending", "backlog", "to demote"),
        (lead, "promote", "backlog", "pending", "to promote"),
        (lead, "start", "pending", "in_progress", "to start"),
        ("owner:pillar-owner", "work", "in_progress", "in_progress", "it was worked on"),
        (lead, "check", "in_progress", "in_progress", "its check passed"),
        (lead, "extend", "in_progress", "in_progress", "more time"),
        ("person:ada", "complete", "in_progress", "completed", "It is fast."),
    ]
    with store.read() as tx:
        assert list(replay.compare(tx, team.mission.id, team.trail())) == []
    by_hand(store, "UPDATE mission_todos SET title = 'B' WHERE id = :id", id=todo.id)
    with store.read() as tx, pytest.raises(PunchlistError, match="is not what was written"):
        list(replay.compare(tx, team.mission.id, team.trail()))
    with pytest.raises(PunchlistError, match="is not what was written"):
        team.todos.get(todo.id)


@pytest.mark.spec("M4")
def test_a_change_of_a_todo_that_is_no_longer_as_it_was_read_is_a_conflict(store: Store, team: Team) -> None:
    todo = team.create()
    team.update(todo, TodoAction.REPRIORITIZE, priority=TodoPriority.LOW)
    reprioritize = partial(update_todo, action=TodoAction.REPRIORITIZE, reason="too late", priority=TodoPriority.HIGH)
    with nothing_changes(store), pytest.raises(Conflict, match="Another writer changed"), store.write() as tx:
        reprioritize(MissionWrite(tx, team.lead, team.mission), todo=todo)


@pytest.mark.spec("M4")
def test_nothing_changes_in_a_mission_that_is_archived(store: Store, team: Team) -> None:
    todo = team.create()
    team.missions.archive(team.person, team.slug, "over")
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match="is archived"):
            team.create()
        with pytest.raises(IllegalTransition, match="is archived"):
            team.update(todo, TodoAction.CANCEL)
    assert MissionTodos(store).get(todo.id) == todo
