"""Work that waits: for delegated work, for a message of the Lead, and without blocking anything else (M8, M9, M12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results, last_words, words
from tests.contract.missions import BUILD

from punchlist.audit.check import check
from punchlist.conversations.message_queue import MessageQueue
from punchlist.engine.periodic import enqueue_cycle
from punchlist.engine.workflows.execute import MAX_FOLLOW_UPS
from punchlist.kernel.clock import timestamp
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.planning.retries import DELAYS
from punchlist.missions.planning.skipped_reviews import MAX_RESTING
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.models.model import ModelBusy, ModelRefused, ModelRequest, Reply
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import RunKind
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.toolcalls.policy import Mode
from punchlist.views.health import read_health
from punchlist.views.inbox_model import RequestKind

Open = Callable[..., Office]
REVIEW = "## Mission Review Cycle"


@pytest.fixture
def office(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Open]:
    opened: list[Office] = []

    def open(answers: Callable[[str, ModelRequest], Reply], **mission: Any) -> Office:
        opened.append(Office(tmp_path / "project", database, clock, answers, **mission))
        return opened[0]

    yield open
    for each in opened:
        each.close()


def complete(ours: Office, request: ModelRequest) -> Reply:
    """The Lead accepts the todo in progress."""
    if has_results(request):
        return Reply("Completed.")
    (todo,) = [todo for todo in ours.team.todos.list(ours.team.slug).items if todo.status is TodoStatus.IN_PROGRESS]
    return call("mission_todo_complete", missionSlug=ours.team.slug, todoId=todo.id, outcome="It is done.")


@pytest.mark.spec("M8", "M9")
def test_a_todo_waits_for_its_delegated_work_and_continues_with_the_result(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "coder":
            return Reply("It takes 72 seconds.")
        if agent == "mission-lead":
            return complete(ours, request)
        if "Results for: Measure the build" in last_words(request):
            assert "> It takes 72 seconds." in last_words(request)
            return Reply("The build takes 72 seconds.")
        return Reply("A coder measures.") if has_results(request) else delegation

    delegation = call("delegate", type="coder", mission="Measure it.", **{"async": True})
    ours = office(answers)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    ours.work()
    assert ours.team.todos.get(todo.id).status is TodoStatus.COMPLETED
    agents = [agent for agent, _ in ours.asked]
    assert agents.index("coder") < agents.index("mission-lead"), "the Lead reviews after the result has arrived"
    reviews = [request for agent, request in ours.asked if agent == "mission-lead"]
    assert "The build takes 72 seconds." in last_words(reviews[0])


@pytest.mark.timeout(300)
@pytest.mark.spec("M8", "M9")
def test_no_review_starts_while_delegated_work_runs_however_often_an_owner_delegates(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "coder":
            return Reply("It takes 72 seconds.")
        if agent == "mission-lead":
            if not has_results(request):
                (work,) = [run for run in ours.services.runs.for_todo(todo.id) if run.kind is RunKind.EXECUTE]
                delegated = [run for run in ours.services.runs.for_todo(todo.id) if run.kind is RunKind.DELEGATE]
                reviews.append((last_words(request), Counter(run.status for run in delegated)))
                assert work.status is RunStatus.RUNNING
            return complete(ours, request)
        if has_results(request):
            return Reply("A coder measures.")
        turns.append(last_words(request))
        delegation = {"type": "coder", "mission": f"Measure it, time {len(turns)}.", "async": True}
        return call("delegate", **delegation)

    turns: list[str] = []
    reviews: list[tuple[str, Counter[RunStatus]]] = []
    ours = office(answers)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    ours.work()
    assert ours.team.todos.get(todo.id).status is TodoStatus.COMPLETED
    ((asked, delegated),) = reviews
    assert delegated == {RunStatus.DONE: MAX_FOLLOW_UPS + 1}
    assert len(turns) == MAX_FOLLOW_UPS + 1
    assert "Report now, with these results." in turns[-1]
    assert "Report now" not in turns[-2]
    assert "It takes 72 seconds." in asked.partition("Results that arrived after this report:")[2]


@pytest.mark.spec("M8")
def test_the_lead_resumes_an_idle_todo_with_a_message_and_the_question_is_closed(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "mission-lead":
            return complete(ours, request) if "Ready" in last_words(request) else Reply("Not good enough.")
        return Reply("Ready." if "Use the new loader" in last_words(request) else "Tried.")

    ours = office(answers, todo={"maxReviews": 0})
    team = ours.team
    todo = team.todo_in(TodoStatus.IN_PROGRESS, "Replace the loader")
    ours.work()
    assert [item.kind for item in ours.services.inbox.list()] == ["escalation"]
    resumed = team.todos.update(team.lead, team.slug, todo.id, TodoAction.RESUME, "Use the new loader.").run_id
    assert ours.services.inbox.list() == []
    # More feedback before the run starts does not start another one.
    assert team.todos.feedback(team.lead, team.slug, todo.id, "And tell how long it takes.").run_id == resumed
    ours.work()
    assert team.todos.get(todo.id).status is TodoStatus.COMPLETED
    told = [last_words(request) for agent, request in ours.asked if agent == "pillar-owner"][-1]
    assert told.startswith("Feedback on: Replace the loader")
    assert all(each in told for each in ("Not good enough.", "Use the new loader.", "And tell how long it takes."))


@pytest.mark.spec("M8")
def test_feedback_reaches_an_owner_that_works(office: Open) -> None:
    """At once, as a message in its turn."""

    given: list[str] = []

    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "mission-lead":
            return complete(ours, request) if "With SWC." in last_words(request) else Reply("With what?")
        if not given:
            given.append(ours.team.todos.feedback(ours.team.lead, ours.team.slug, todo.id, "Use SWC.").todo.id)
            # The message interrupts it.
            return call("run_command", command="sleep 30")
        return Reply("With SWC." if "Use SWC." in words(request) else "Done.")

    ours = office(answers)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS, "Replace the loader")
    ours.work()
    assert ours.team.todos.get(todo.id).status is TodoStatus.COMPLETED
    assert [agent for agent, _ in ours.asked].count("mission-lead") == 2, "one review, and the result of its call"


@pytest.mark.timeout(300)
@pytest.mark.spec("M8", "M12")
def test_an_unanswered_approval_stops_only_its_own_run(office: Open) -> None:
    """Work on a todo and an answer in a chat wait for 40 days; everything else goes on in the same chats."""

    def answers(agent: str, request: ModelRequest) -> Reply:
        asked = last_words(request)
        if has_results(request):
            return Reply("It is done.")
        if agent == "pillar-owner" and asked.startswith(("Execute: Deploy", "Please deploy")):
            return call("run_command", command="make deploy")
        if asked.startswith("Review: "):
            todo_id = asked.partition("todoId ")[2][:36]
            return call("mission_todo_complete", missionSlug=team.slug, todoId=todo_id, outcome="It is done.")
        return Reply("Noted.")

    ours = office(answers, cadence={"cron": "0 9 * * *", "timezone": "UTC"})
    team, build, runs = ours.team, ours.team.pillars[BUILD], ours.services.runs
    chats, person = MessageQueue(team.store), team.person.actor
    deploy = team.todo_in(TodoStatus.IN_PROGRESS, "Deploy")
    chats.add(MissionScope(build.conversation_id, person), "Please deploy.")
    ours.work(Mode.DEFAULT)
    ours.clock.advance(days=40)
    ours.work(Mode.DEFAULT)
    waiting = {run.kind: run for run in runs.list() if run.status is RunStatus.WAITING}
    assert set(waiting) == {RunKind.EXECUTE, RunKind.CHAT}
    asked = {item.run_id: item.todo_id for item in ours.services.inbox.list()}
    assert asked == {waiting[kind].id: waiting[kind].todo_id for kind in waiting}
    ended = runs.list(ended=True, limit=500)
    assert [run.status for run in ended if run.kind is RunKind.CYCLE] == [RunStatus.DONE]
    planned = Counter(run.pillar_id for run in ended if run.kind is RunKind.PLAN and run.status is RunStatus.DONE)
    assert planned == {pillar.id: 1 for pillar in team.pillars.values()}
    other = team.todo_in(TodoStatus.IN_PROGRESS, "Measure")
    for chat in (build.todo_conversation_id, build.conversation_id, team.mission.conversation_id):
        chats.add(MissionScope(chat, person), "Hello?")
    ours.work(Mode.DEFAULT)
    assert team.todos.get(other.id).status is TodoStatus.COMPLETED
    assert [runs.get(run.id).status for run in waiting.values()] == [RunStatus.WAITING] * 2
    for chat in (build.todo_conversation_id, build.conversation_id, team.mission.conversation_id):
        assert chats.pending(chat) == []
        assert "Noted." in ours.services.conversations.messages(chat)[-1].content
    for item in ours.services.inbox.list():
        ours.services.inbox.answer(team.person, str(item.number), "approve")
    ours.work(Mode.DEFAULT)
    assert [runs.get(run.id).status for run in waiting.values()] == [RunStatus.DONE] * 2
    assert team.todos.get(deploy.id).status is TodoStatus.COMPLETED


@pytest.mark.spec("I1")
def test_an_archived_mission_asks_nothing_any_more(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        waits = agent == "pillar-owner" and not has_results(request)
        return call("run_command", command="rm bread") if waits else Reply("Nothing.")

    ours = office(answers)
    team = ours.team
    team.todos.create(team.lead, team.slug, NewMissionTodo(BUILD, "Order flour", deadline="2026-02-22"))
    ours.clock.advance(days=3)
    enqueue_cycle(ours.services.store, team.person, team.mission)
    ours.work(Mode.DEFAULT)
    assert {item.kind for item in ours.services.inbox.list()} == {RequestKind.ESCALATION, RequestKind.APPROVAL}
    team.missions.archive(team.person, team.slug, "the bakery is closed")
    ours.work(Mode.DEFAULT)
    assert ours.services.inbox.list() == []
    assert ours.services.inbox.counts() == {}
    assert ours.services.runs.list() == []
    team.missions.unarchive(team.person, team.slug, "it opens again")
    assert [item.kind for item in ours.services.inbox.list()] == [RequestKind.ESCALATION]
    assert check(team.store, SCHEMA_VERSION).problems == []


@pytest.mark.timeout(300)
@pytest.mark.spec("M12")
def test_unanswered_questions_of_planning_do_not_add_up(office: Open) -> None:
    """An owner that asks in every cycle has three open questions at most; then its pillar is skipped, which is said."""

    def answers(agent: str, request: ModelRequest) -> Reply:
        asked = last_words(request)
        if asked.startswith(REVIEW):
            prompts.append(asked)
        asks = agent == "pillar-owner" and "Build Performance pillar" in asked
        return call("run_command", command="make plan") if asks else Reply("Noted.")

    prompts: list[str] = []
    ours = office(answers, cadence={"cron": "0 9 * * *", "timezone": "UTC"})
    for days in (1, 1, 1, 1, 0):
        # A cycle gives planning that waits ten minutes.
        ours.clock.advance(days=days, minutes=11)
        ours.work(Mode.DEFAULT)
    waiting = [run for run in ours.services.runs.list() if run.status is RunStatus.WAITING]
    assert [run.kind for run in waiting] == [RunKind.PLAN] * MAX_RESTING
    assert len(prompts) == 4
    assert all("skipped: its planning run" in prompt for prompt in prompts)


@pytest.mark.timeout(300)
@pytest.mark.spec("M12", "M13")
def test_unanswered_reviews_do_not_stop_the_cycles(office: Open) -> None:
    """A Lead that needs an approval in every review has three open reviews at most; later cycles have none."""

    def answers(agent: str, request: ModelRequest) -> Reply:
        asked = last_words(request)
        if has_results(request):
            return Reply("Noted.")
        if agent == "coder":
            return call("run_command", command="make review")
        if not asked.startswith(REVIEW):
            return Reply("Noted.")
        reviewed.append(asked)
        return Reply("Noted.") if approved else call("delegate", type="coder", mission="Look at the build.")

    reviewed: list[str] = []
    approved: list[bool] = []
    ours = office(answers, cadence={"cron": "0 9 * * *", "timezone": "UTC"})
    team, runs = ours.team, ours.services.runs
    late = team.create("Measure", deadline=timestamp(ours.clock.now + timedelta(days=4, hours=12)))

    def day() -> None:
        ours.clock.advance(days=1, minutes=11)
        ours.work(Mode.DEFAULT)

    for _ in range(5):
        day()
    cycles = [run for run in runs.list(ended=True, limit=100) if run.kind is RunKind.CYCLE]
    assert Counter(run.status for run in cycles) == {RunStatus.WAITING: MAX_RESTING, RunStatus.DONE: 2}
    planned = [run for run in runs.list(ended=True, limit=100) if run.kind is RunKind.PLAN]
    assert len(planned) == 5 * len(team.pillars), "pillars are planned in every cycle"
    assert team.todos.get(late.id).overdue_at is not None, "deadlines are handled in every cycle"
    waiting = sorted((run for run in cycles if run.status is RunStatus.WAITING), key=lambda run: run.created_at)
    (newest, *_) = (run for run in cycles if run.status is RunStatus.DONE)
    assert (newest.result or "").startswith(
        "The review was left out: 3 earlier reviews of this mission wait for a person."
    )
    assert all(
        f"Cycle {run.id} is waiting since {run.changed_at}: {run.why}" in (newest.result or "") for run in waiting
    )
    assert "onboarding: Noted." in (newest.result or "")
    posted = ours.services.conversations.messages_outside_turns(team.mission.conversation_id)
    assert any(newest.workflow_id in each.content and "The review was left out" in each.content for each in posted)
    health = read_health(team.store, team.slug).missions[0]
    assert health.missed_cycles == 0
    assert [run.id for run in health.waiting_reviews] == [run.id for run in waiting]
    assert any("3 reviews of cycles wait for a person, so later cycles have none" in each for each in health.problems)
    assert len(reviewed) == MAX_RESTING

    approved.append(True)
    for item in ours.services.inbox.list():
        if item.kind is RequestKind.APPROVAL:
            ours.services.inbox.answer(team.person, item.id, "approve")
    ours.work(Mode.DEFAULT)
    assert {runs.get(run.id).status for run in waiting} == {RunStatus.DONE}
    day()
    assert len(reviewed) == MAX_RESTING + 1, "the cycle after the answer has a review"
    assert not read_health(team.store, team.slug).missions[0].waiting_reviews


# --- a model that is not available ------------------------------------------------------------------------


@pytest.mark.spec("M10", "I1")
@pytest.mark.parametrize("failures", [1, 3])
def test_a_message_that_arrives_while_the_model_is_busy_is_answered_later(office: Open, failures: int) -> None:
    busy = [failures]

    def answers(agent: str, request: ModelRequest) -> Reply:
        if busy[0]:
            busy[0] -= 1
            raise ModelBusy("overloaded")
        return Reply(f"You said: {last_words(request)}")

    ours = office(answers)
    chat = ours.team.mission.conversation_id
    MessageQueue(ours.team.store).add(MissionScope(chat, ours.team.person.actor), "What of the loader?")
    ours.work()
    for leg in range(failures):
        (item,) = ours.services.inbox.list()
        assert (item.kind, item.subject, item.answers) == ("failure", "chat", ("retry", "acknowledge"))
        assert item.reason == f"is retried at {timestamp(ours.clock() + DELAYS[leg])}"
        ours.work()
        assert [each.number for each in ours.services.inbox.list()] == [item.number], "it is not retried too early"
        ours.clock.advance(seconds=DELAYS[leg].total_seconds())
        ours.work()
    assert ours.services.inbox.list() == []
    said = [each.content for each in ours.services.conversations.messages(chat) if each.role == "assistant"]
    assert len(said) == 1
    assert said[0].count("What of the loader?") == 1
    (run,) = ours.services.runs.list(ended=True)
    assert (run.status, run.leg) == (RunStatus.DONE, failures)


@pytest.mark.spec("M10")
def test_each_message_to_a_busy_model_is_answered_once(office: Open) -> None:
    busy = True

    def answers(agent: str, request: ModelRequest) -> Reply:
        if busy:
            raise ModelBusy("overloaded")
        return Reply(f"Answer to {last_words(request)[-5:]}")

    ours = office(answers)
    chat = ours.team.pillars[BUILD].conversation_id
    for number in range(3):
        MessageQueue(ours.team.store).add(MissionScope(chat, ours.team.person.actor), f"Question number {number:05}")
        ours.work()
    assert [item.subject for item in ours.services.inbox.list()] == ["chat"] * 3
    busy = False
    ours.clock.advance(minutes=1)
    ours.work()
    said = [each.content for each in ours.services.conversations.messages(chat) if each.role == "assistant"]
    assert [f"Answer to {number:05}" in text for number, text in enumerate(sorted(said))] == [True] * 3
    assert ours.services.inbox.list() == []


@pytest.mark.spec("M9", "I1")
def test_a_delegation_that_the_model_was_not_available_for_is_retried_before_the_todo_continues(office: Open) -> None:
    busy = [2]

    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "coder":
            if busy[0]:
                busy[0] -= 1
                raise ModelBusy("overloaded")
            return Reply("It takes 72 seconds.")
        if agent == "mission-lead":
            return complete(ours, request)
        if "Results for: Measure the build" in last_words(request):
            assert "> It takes 72 seconds." in last_words(request)
            return Reply("The build takes 72 seconds.")
        return Reply("A coder measures.") if has_results(request) else delegation

    delegation = call("delegate", type="coder", mission="Measure it.", **{"async": True})
    ours = office(answers)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    for leg in range(2):
        ours.work()
        (item,) = ours.services.inbox.list()
        assert (item.subject, item.todo_id) == ("delegate", todo.id)
        ours.clock.advance(seconds=DELAYS[leg].total_seconds())
    ours.work()
    assert ours.team.todos.get(todo.id).status is TodoStatus.COMPLETED
    assert ours.services.inbox.list() == []


@pytest.mark.spec("I1")
def test_an_answer_that_fails_otherwise_is_for_a_person(office: Open) -> None:
    broken = True

    def answers(agent: str, request: ModelRequest) -> Reply:
        if broken:
            raise ModelRefused("the key is not valid")
        return Reply("Here I am.")

    ours = office(answers)
    scope = MissionScope(ours.team.mission.conversation_id, ours.team.person.actor)
    MessageQueue(ours.team.store).add(scope, "Are you there?")
    ours.work()
    ours.clock.advance(days=1)
    ours.work()
    (item,) = ours.services.inbox.list()
    assert (item.subject, item.reason) == ("chat", "is not retried")
    broken = False
    ours.services.inbox.answer(scope, str(item.number), "retry")
    ours.work()
    assert ours.services.inbox.list() == []
    assert "Are you there?" in last_words(ours.asked[-1][1])
