"""What a todo has taken, and what shows that it was done: of missions, and of a turn's plan (X4)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import call
from tests.contract.missions import BUILD, ONBOARDING, Team, developer_experience
from tests.contract.rehearsing import Rehearsing, calls, completes, plans, says
from tests.sessions import add_trace
from tests.tables import engine_of

from punchlist.conversations import repository as conversation_usage
from punchlist.conversations.model import CallEvidence, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.missions import repository as mission_repository
from punchlist.missions.model import MissionTodo
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.usage import MissionUsageService, RunUsage
from punchlist.models.rehearsal import RehearsedReply
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.service import Plans
from punchlist.plan.usage import PlanTodoUsage, PlanUsageService
from punchlist.runs.model import Run, RunKind, UsageIncrement
from punchlist.runs.queue import RunQueue
from punchlist.runs.service import Runs
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.views import mission_repository as view_repository
from punchlist.views.todo_evidence import read_todo_evidence

pytestmark = pytest.mark.spec("X4")

LOOK: Final[tuple[str, Any]] = ("list_directory", {})
MISSING: Final[tuple[str, Any]] = ("read_file", {"path": "nowhere.txt"})


class Ticking(StoppedClock):
    """Nothing happens at the same moment as anything else."""

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def store(database: str, clock: Ticking) -> Iterator[Store]:
    opened = open_store(database, clock=clock)
    yield opened
    opened.close()


# --- missions -----------------------------------------------------------------------------------------------


class Office:
    """A mission whose todos are worked on by agents that say what they are told to."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.team: Team = developer_experience(store)
        self.book = RunQueue(store, "elsewhere:1:1")
        self.accounts = MissionUsageService(store)

    def start(self, title: str, pillar: str = BUILD) -> tuple[MissionTodo, Run]:
        todo = self.team.todo_in(TodoStatus.IN_PROGRESS, title, pillar=pillar)
        (run,) = Runs(self.store).for_todo(todo.id)
        assert self.book.dispatch(run)
        begun = self.book.begin(run.id)
        assert begun
        return todo, begun

    def work(self, run: Run, *replies: RehearsedReply, **agents: list[RehearsedReply]) -> str:
        """A turn of a run; its id."""
        scope = Scope(run.conversation_id, Actor(Role.SUPERVISOR, "pillar-owner"))
        Rehearsing(self.store, scope, self.folder, *replies, **agents).run()
        turn = next(one for one in Conversations(self.store).turns(run.conversation_id) if not one.parent_turn_id)
        self.book.set_turn(run.id, turn.id)
        return turn.id


@pytest.fixture
def office(store: Store, tmp_path: Path) -> Office:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "seen.txt").write_text("one\ntwo\n")
    return Office(store, folder)


def evidence(office: Office, todo: MissionTodo) -> list[CallEvidence]:
    return [each.call for each in read_todo_evidence(office.store, todo.id).calls]


def test_the_evidence_of_a_todo_are_the_calls_of_its_turns_and_of_their_workers(office: Office) -> None:
    todo, run = office.start("A")
    delegates = calls(("delegate", {"type": "researcher", "mission": "Look."}))
    reads = calls(("read_file", {"path": "seen.txt"}))
    first = office.work(run, calls(LOOK), delegates, says("Done."), researcher=[reads, says("Found.")])
    office.work(run, calls(MISSING), says("Done again."))
    office.book.finish(run.id, "Done.")
    shown = evidence(office, todo)
    told = [(one.tool, one.agent, one.status) for one in shown]
    assert told == [
        ("list_directory", "supervisor", "success"),
        ("delegate", "supervisor", "success"),
        ("read_file", "researcher", "success"),
        ("read_file", "supervisor", "error"),
    ]
    assert [one.summary for one in shown[:3]] == ["seen.txt  8", "Found.", "one"]
    assert "nowhere.txt" in shown[3].summary
    assert shown[0].turn_id == first
    assert [one.at for one in shown] == sorted(one.at for one in shown)
    assert {"callId", "tool", "status", "told", "outputFile"} <= shown[0].as_json().keys()


def test_the_evidence_of_one_todo_is_not_that_of_another_in_the_same_chat(office: Office) -> None:
    first, run = office.start("A")
    office.work(run, calls(LOOK), says("Done."))
    office.book.fail(run.id, "No model.")
    second, other = office.start("B")
    office.work(other, calls(MISSING), says("Done."))
    office.book.finish(other.id, "Done.")
    # Tried again: what was done in between was for somebody else.
    Runs(office.store).resume(office.team.person, run.id)
    assert office.book.dispatch(Runs(office.store).get(run.id))
    office.book.begin(run.id)
    office.work(run, calls(LOOK), says("Done."))
    assert [one.tool for one in evidence(office, first)] == ["list_directory", "list_directory"]
    assert [one.tool for one in evidence(office, second)] == ["read_file"]


def test_evidence_is_read_a_page_at_a_time_newest_first(office: Office) -> None:
    todo, run = office.start("A")
    delegates = calls(("delegate", {"type": "researcher", "mission": "Look."}))
    reads = calls(("read_file", {"path": "seen.txt"}))
    office.work(run, calls(LOOK), delegates, calls(LOOK), says("Done."), researcher=[reads, reads, says("Found.")])
    office.work(run, calls(MISSING, LOOK), says("Done again."))
    everything = read_todo_evidence(office.store, todo.id)
    assert (len(everything.calls), everything.cursor) == (7, None)
    assert [each.as_json()["arguments"] for each in everything.calls[-2:]] == [MISSING[1], LOOK[1]]
    pages, cursor = [read_todo_evidence(office.store, todo.id, limit=2)], ""
    while cursor := pages[0].cursor or "":
        pages.insert(0, read_todo_evidence(office.store, todo.id, cursor=cursor, limit=2))
    assert [len(page.calls) for page in pages] == [1, 2, 2, 2]
    assert [call for page in pages for call in page.calls] == everything.calls
    with pytest.raises(InvalidInput, match="cursor"):
        read_todo_evidence(office.store, todo.id, cursor="first")


def test_what_a_todo_has_used_is_what_its_runs_have_used(office: Office) -> None:
    todo, run = office.start("A")
    assert office.accounts.todo(todo.id) == RunUsage(runs=1)
    office.work(run, calls(LOOK, LOOK), says("Done."))
    # The turn is not over for the run; its calls are there to be seen.
    assert office.accounts.todo(todo.id) == RunUsage(runs=1, calls=2)
    office.book.add_usage(run.id, "turn-1", UsageIncrement(1_000, 100, 0.25, 2, 1.5))
    office.book.finish(run.id, "Done.")
    account = office.accounts.todo(todo.id)
    assert account == RunUsage(1, 1_000, 100, 0.25, 1.5, 2)
    assert account.as_json() == {
        "runs": 1,
        "usage": {"inputTokens": 1_000, "outputTokens": 100},
        "cost": 0.25,
        "seconds": 1.5,
        "toolCalls": 2,
    }


def test_a_mission_adds_up_by_pillar_and_by_todo(office: Office) -> None:
    todo, run = office.start("A")
    office.book.add_usage(run.id, "turn-2", UsageIncrement(1_000, 100, 0.25, 2, 1.5))
    office.book.finish(run.id, "Done.")
    other, more = office.start("B", ONBOARDING)
    office.book.add_usage(more.id, "turn-3", UsageIncrement(10, 1, 0.5, 1, 0.5))
    mission = office.team.mission
    cycle = Runs(office.store).enqueue(
        office.team.person,
        kind=RunKind.CYCLE,
        conversation_id=mission.conversation_id,
        agent="mission-lead",
        request={},
        mission_id=mission.id,
    )
    assert office.book.dispatch(cycle)
    office.book.begin(cycle.id)
    office.book.add_usage(cycle.id, "turn-4", UsageIncrement(5, 5, 1.0, 0, 1.0))
    told = office.accounts.mission(mission.id)
    pillars = {slug: pillar.id for slug, pillar in office.team.pillars.items()}
    assert told.usage == RunUsage(3, 1_015, 106, 1.75, 3.0, 3)
    assert told.pillars == {
        pillars[BUILD]: RunUsage(1, 1_000, 100, 0.25, 1.5, 2),
        pillars[ONBOARDING]: RunUsage(1, 10, 1, 0.5, 0.5, 1),
    }
    assert told.todos == {todo.id: told.pillars[pillars[BUILD]], other.id: told.pillars[pillars[ONBOARDING]]}
    assert office.accounts.pillars(mission.id)[pillars[BUILD]] == told.pillars[pillars[BUILD]]


def test_what_was_never_worked_on_has_used_nothing(office: Office) -> None:
    todo = office.team.create("A")
    for id in (todo.id, "nowhere"):
        assert office.accounts.todo(id) == RunUsage()
        assert read_todo_evidence(office.store, id).calls == []
    assert office.accounts.mission("nowhere").usage == RunUsage()
    assert office.accounts.pillars(office.team.mission.id) == {}


def test_one_todo_is_looked_at_along_indexes(tmp_path: Path) -> None:
    """However much else there is in the chat and in the mission. SQLite tells how it would look."""
    store = open_store(f"sqlite:///{tmp_path}/punchlist.db")
    names: tuple[str, ...] = (
        "todo_id",
        "stream",
        "turn_id",
        "turn_ids",
        "conversation_id",
        "since",
        "until",
        "before",
        "after",
        "most",
    )
    names = (*names, "at", "position", "id")
    of_todo = (
        mission_repository.run_totals_of_todo,
        mission_repository.RUNS_OF_TODO,
        mission_repository.TURNS_OF_RUN,
        mission_repository.WORK_OF_TURNS,
    )
    of_turn = (
        conversation_usage.CHILD_TURNS_DURING,
        conversation_usage.CALLS,
        conversation_usage.CALLS_BEFORE,
        conversation_usage.REQUESTS,
        view_repository.said_after,
        mission_repository.turns_with_workers,
    )
    for statement in (*of_todo, *of_turn):
        sql, values = statement.on(store.database.kind, dict.fromkeys(names, "x"))
        with engine_of(store).connect() as connection:
            steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", tuple(values)).fetchall()
        assert steps
        # Except for the turns that a recursion found, and its list of ids.
        scanned = {step[3] for step in steps if "SCAN" in step[3]}
        assert scanned <= {"SCAN work", "SCAN json_each VIRTUAL TABLE INDEX 1:"}, steps
    store.close()


# --- a turn's plan ------------------------------------------------------------------------------------------


def starts(number: int) -> RehearsedReply:
    return calls(("start_todo", {"todoId": f"{{{{ created[{number}].id }}}}"}))


def accounts_of(store: Store) -> dict[str, PlanTodoUsage]:
    """By title."""
    turn = next(one for one in Conversations(store).turns("s") if not one.parent_turn_id)
    todos = Plans(store).list(TurnScope("s", Actor(Role.SUPERVISOR, "test"), turn.id), frozenset(PlanStatus)).items
    found = PlanUsageService(store).usage_by_todo(turn.id, todos)
    return {todo.title: found[todo.id] for todo in todos if todo.id in found}


def test_a_plans_todos_have_taken_what_was_done_while_each_was_in_progress(
    store: Store, agent: Scope, tmp_path: Path
) -> None:
    Rehearsing(
        store,
        agent,
        tmp_path,
        plans("A", "B", "C"),
        calls(LOOK),
        starts(0),
        RehearsedReply(text="", calls=(LOOK,), tokens=100),
        calls(("delegate", {"type": "researcher", "mission": "Look."})),
        completes(0),
        starts(1),
        completes(1),
        says("Done."),
        researcher=[calls(MISSING), RehearsedReply(text="Found.", tokens=50)],
    ).limits(continuations=0).run()
    found = accounts_of(store)
    assert list(found) == ["A", "B"]
    assert [one.tool for one in found["A"].evidence] == [
        "list_directory",
        "delegate",
        "read_file",
        "find_files",
        "complete_todo",
    ]
    assert [one.tool for one in found["B"].evidence] == ["find_files", "complete_todo"]
    # Its own requests, and those of its worker.
    assert (found["A"].requests, found["B"].requests) == (5, 1)
    assert found["A"].input_tokens >= 150
    assert found["A"].seconds > found["B"].seconds > 0
    told = found["A"].as_json()
    assert (told["toolCalls"], told["usage"]["inputTokens"]) == (5, found["A"].input_tokens)
    assert told["evidence"][2]["status"] == "error"


def test_a_todo_in_progress_has_taken_what_was_done_so_far(
    store: Store, clock: Ticking, agent: Scope, plans: Plans, turn: TurnScope
) -> None:
    conversations = Conversations(store)
    (todo,) = call(plans, turn, "create_todo", items=[{"title": "A"}])["created"]
    add_trace(store, turn, turn.turn_id, output='{"finish": "stop", "tokens": [7, 7]}')
    call(plans, turn, "start_todo", todoId=todo["id"])
    add_trace(store, turn, turn.turn_id, output='{"finish": "stop", "tokens": [40, 2]}')
    # A request that failed, and one that is not as it was written.
    add_trace(store, turn, turn.turn_id, error="overloaded")
    add_trace(store, turn, turn.turn_id, output='{"tokens": "many"}')
    clock.advance(seconds=10)
    found = accounts_of(store)["A"]
    assert (found.requests, found.input_tokens, found.output_tokens, found.evidence) == (3, 40, 2, ())
    assert 10 < found.seconds < 11
    conversations.end_turn(agent, reason="enough")
    clock.advance(seconds=100)
    assert accounts_of(store)["A"].seconds < 11
    with pytest.raises(NotFound, match="There is no turn 'x'"):
        PlanUsageService(store).usage_by_todo("x", [])
