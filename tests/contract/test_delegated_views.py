"""What a todo, a mission and its budget show of delegated work, which is done in a conversation of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results, last_words
from tests.contract.missions import BUILD, developer_experience

from punchlist.audit.check import check
from punchlist.conversations.model import NoticeKind
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.missions import chats
from punchlist.missions.budgets.repository import Spend, spend_of_todo
from punchlist.missions.model import MissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.models.model import ModelRequest, Reply
from punchlist.runs import service as runs
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import RunKind
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store
from punchlist.surfaces.cli.mission_chat_view import entry_lines
from punchlist.views.activity_repository import ActivityEntry
from punchlist.views.chat import read_chat
from punchlist.views.live import read_activity
from punchlist.views.live_hub import LiveHub
from punchlist.views.search import read_search
from punchlist.views.series import read_series
from punchlist.views.todo_transcript import read_newest, read_todo_transcript

Open = Callable[..., Office]
PATIENCE = 20.0


@pytest.fixture
def office(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Open]:
    opened: list[Office] = []

    def open(answers: Callable[[str, ModelRequest], Reply], **mission: Any) -> Office:
        opened.append(Office(tmp_path / "project", database, clock, answers, **mission))
        return opened[0]

    yield open
    for each in opened:
        each.close()


def measured(office: Open, **mission: Any) -> tuple[Office, MissionTodo]:
    """The owner lets a coder measure without waiting, and the Lead sends the report back once, with a person's word."""

    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "coder":
            return Reply("It takes 72 seconds.")
        if agent == "mission-lead":
            if "It takes 71 seconds" not in last_words(request):
                return Reply("Measure it twice.")
            if has_results(request):
                return Reply("Completed.")
            return call("mission_todo_complete", missionSlug=ours.team.slug, todoId=todo.id, outcome="It is done.")
        if "Measure it twice." in last_words(request):
            return Reply("It takes 71 seconds.")
        if has_results(request):
            return Reply("A coder measures.")
        if "Results for" in last_words(request):
            return Reply("It takes 72 seconds, the coder says.")
        return call("delegate", type="coder", mission="Measure the zebra.", **{"async": True})

    ours = office(answers, **mission)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    ours.team.todos.feedback(ours.team.person, ours.team.slug, todo.id, "Use a warm cache.")
    ours.work()
    assert ours.team.todos.get(todo.id).status is TodoStatus.COMPLETED
    return ours, todo


@pytest.mark.spec("M8", "M9", "M15")
def test_the_transcript_of_a_todo_says_who_spoke_in_the_order_of_time(office: Open) -> None:
    ours, todo = measured(office)
    store = ours.services.store
    page, whole = None, []
    while page is None or page.cursor is not None:
        page = read_todo_transcript(store, todo.id, cursor=page.cursor if page else None, limit=3)
        assert len(page.entries) <= 3
        whole += page.as_json()["items"]
    assert [each["createdAt"] for each in whole] == sorted(each["createdAt"] for each in whole)
    assert {each["todoId"] for each in whole} == {todo.id}
    assert len({each["id"] for each in whole}) == len(whole)
    assert {each["agent"] for each in whole} == {None, "pillar-owner", "mission-lead", "coder"}
    posted = [(each["kind"], each["postedBy"]) for each in whole if each["agent"] is None]
    assert posted[0] == ("todo_feedback", "person:ada")
    assert ("worker_result", "worker:coder") in posted
    assert posted[-2:] == [("todo_feedback", "lead:mission-lead"), ("todo_result", "owner:pillar-owner")]
    entries = read_todo_transcript(store, todo.id, limit=500).entries
    assert read_newest(store, todo.id, limit=500).entries == entries
    newest = read_newest(store, todo.id, limit=4)
    assert (newest.entries, newest.earlier) == (entries[-4:], True)
    headings = [line for entry in entries for line in entry_lines(entry, 100) if "  for coder" in line]
    assert len(headings) == 1, "the owner asked, no person"
    assert any("todo feedback by ada" in line for entry in entries for line in entry_lines(entry, 100))
    assert not any(line.endswith("  person") for entry in entries for line in entry_lines(entry, 100))
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("M15", "T15")
def test_activity_and_search_of_a_mission_include_the_chats_of_delegated_work(office: Open) -> None:
    ours, todo = measured(office)
    store, slug = ours.services.store, ours.team.slug
    [run] = [run for run in ours.services.runs.for_todo(todo.id) if run.kind is RunKind.DELEGATE]
    found: list[ActivityEntry] = []
    last = 0
    while entries := read_activity(store, mission=slug, after=last, limit=7).entries:
        found += entries
        last = entries[-1].seq
    assert [entry.seq for entry in found] == sorted({entry.seq for entry in found})
    assert run.conversation_id in {entry.conversation_id for entry in found}
    everything = read_activity(store, limit=500).entries
    assert [entry for entry in everything if entry.conversation_id == run.conversation_id] == [
        entry for entry in found if entry.conversation_id == run.conversation_id
    ]
    hits = read_search(store, "zebra", mission=slug).hits
    assert run.conversation_id in {hit.conversation_id for hit in hits}
    assert {hit.mission_id for hit in hits} == {ours.team.mission.id}


@pytest.mark.spec("M19", "X4")
def test_delegated_work_and_reviews_are_charged_to_the_mission_the_pillar_and_the_todo(office: Open) -> None:
    ours, todo = measured(office, limits={"tokensPerDay": 1_000_000})
    requests = len(ours.asked)
    assert {"coder", "mission-lead"} < {agent for agent, _ in ours.asked}
    [of_build] = read_series(ours.services.store, ours.team.slug, days=1).spend
    assert (of_build.pillar, of_build.requests, of_build.input_tokens) == (BUILD, requests, 90 * requests)
    with ours.services.store.read() as tx:
        assert (spend_of_todo(tx, todo.id) or Spend()).requests == requests


@pytest.mark.spec("M19")
def test_delegated_work_waits_for_a_budget_and_has_the_mode_of_the_mission(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "pillar-owner" and not has_results(request):
            return call("delegate", type="coder", mission="Measure it.", **{"async": True})
        return Reply("A coder measures.")

    # The requests of the owner fit, that of the coder does not.
    ours = office(answers, limits={"costPerTodo": 0.05})
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    with ours.services.store.write() as tx:
        scope = ours.team.owner
        ours.services.conversations.ensure(
            tx, type(scope)("run-x", scope.actor), title="x", metadata={"channel": "run"}, reason="a test"
        )
        runs.enqueue(
            tx, scope, kind=RunKind.DELEGATE, conversation_id="run-x", agent="coder", todo_id=todo.id,
            request={"mission": "Measure it.", "origin": ours.team.mission.conversation_id, "todoId": todo.id},
            mission_id=ours.team.mission.id, pillar_id=todo.pillar_id, id="x",
        )  # fmt: skip
    ours.work()
    run = ours.services.runs.get("x")
    assert (run.status, run.why) == (RunStatus.WAITING, "Budget reached: $0.00 of $0.05 used (costPerTodo)")
    assert "coder" not in {agent for agent, _ in ours.asked}


@pytest.mark.spec("M15", "S8")
def test_a_subscription_to_a_mission_gets_the_chats_that_begin_later(store: Store) -> None:
    team = developer_experience(store)
    other = developer_experience(store, "another-mission")
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    hub = LiveHub(store)
    last = read_activity(store, limit=500).last
    try:
        with hub.subscribe(mission=team.slug) as live, hub.subscribe(mission=other.slug) as elsewhere:
            with store.write() as tx:
                scope = type(team.owner)("run-later", Actor(Role.OWNER, "pillar-owner"))
                Conversations(store).ensure(tx, scope, title="Later", metadata={"channel": "run"}, reason="a test")
                request = {"mission": "Measure it.", "origin": "x", "todoId": todo.id}
                run = runs.enqueue(
                    tx, scope, kind=RunKind.DELEGATE, conversation_id="run-later", agent="coder", request=request,
                    mission_id=team.mission.id, pillar_id=todo.pillar_id, todo_id=todo.id,
                )  # fmt: skip
                chats.post(tx, scope, "run-later", NoticeKind.NOTE, "Measured.")
            found = live.read(PATIENCE)
            assert {item.conversation_id for item in found} == {"run-later"}
            # A subscriber that missed events reads them from the log.
            with hub.subscribe(mission=team.slug, after=last) as again:
                assert [item.seq for item in again.read(PATIENCE)][: len(found)] == [item.seq for item in found]
            assert "run-later" not in {item.conversation_id for item in elsewhere.read(0.0)}
        later = read_activity(store, mission=team.slug, after=last).entries
        assert "run-later" in {entry.conversation_id for entry in later}
        assert [entry.message.posted_by for entry in read_chat(store, "run-later").entries] == ["owner:pillar-owner"]
        assert team.update(todo, TodoAction.CANCEL).status is TodoStatus.CANCELLED
        assert run.mission_id == team.mission.id
    finally:
        hub.close()
