"""A mission is what its file says: made, changed, archived, in one transaction and on both databases (M1, M14)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest
from tests.conftest import ROOT, StoppedClock
from tests.contract.front import by_hand, everything, nothing_changes, trail
from tests.sessions import newest_sessions

from punchlist.conversations.model import MessageRole, NoticeKind, Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed, NotFound, StoreDamaged
from punchlist.kernel.events import Actor, Role
from punchlist.missions import chats
from punchlist.missions import replay as mission_replay
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import event_stream
from punchlist.missions.config import file
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.service import ApplyResult, Missions
from punchlist.missions.todos.lifecycle import TodoAction
from punchlist.missions.todos.service import MissionTodos
from punchlist.storage import event_log
from punchlist.storage.store import Store

ANN = Scope("s", Actor(Role.PERSON, "ann"))
LEAD = MissionScope("s", Actor(Role.LEAD, "lead"))
FILE: dict[str, Any] = {
    "name": "Developer Experience",
    "slug": "dx",
    "description": "Nobody waits for a machine.",
    "pillars": [
        {
            "name": "Build Performance",
            "slug": "build",
            "metrics": [
                {"name": "Build time", "slug": "build-time", "unit": "s", "target": 60, "direction": "down"},
                {"name": "Cache hits", "slug": "cache-hits", "unit": "%", "target": 90, "direction": "up"},
            ],
            "strategies": [{"description": "Replace slow loaders"}, {"description": "Cache", "status": "proposed"}],
        },
        {"name": "Onboarding", "slug": "onboarding", "description": "A first change on the first day"},
    ],
}


@pytest.fixture
def missions(store: Store, conversations: Conversations) -> Missions:
    return Missions(store, conversations)


def changed(**changes: Any) -> dict[str, Any]:
    return deepcopy({**FILE, **changes})


def apply(missions: Missions, raw: dict[str, Any], scope: Scope = ANN) -> ApplyResult:
    source = json.dumps(raw)
    return missions.apply(scope, file.parse_mission(source), source)


def replayed(store: Store, mission_id: str) -> list[str]:
    """How the rows of one mission differ from what the events made of them."""
    with store.read() as tx:
        events = event_log.read_stream(tx, event_stream(mission_id))
        made = Counter(mission_replay.rows_made(events))
        rows = everything(store)
        found = {
            name: sum(mission_id in row[:2] for row in rows[name])
            for name in ("missions", "pillars", "strategies", "metrics")
        }
        wrong = [f"{name}: {found[name]} rows, {made[name]} made" for name in found if found[name] != made[name]]
        return [*mission_replay.compare(tx, mission_id, events), *wrong]


def metadata(conversations: Conversations, conversation_id: str) -> Any:
    return json.loads(conversations.get(conversation_id).metadata)


def add_todos(store: Store, pillar: str, count: int) -> list[str]:
    todos = MissionTodos(store)
    return [todos.create(LEAD, "dx", NewMissionTodo(pillar, f"Todo {number}")).todo.id for number in range(count)]


# --- made -------------------------------------------------------------------------------------------------


@pytest.mark.spec("M1")
def test_a_file_makes_a_mission_with_its_pillars_strategies_and_metrics(missions: Missions, store: Store) -> None:
    applied = apply(missions, FILE)
    assert applied.created
    assert applied.warnings == []
    assert applied.mission == missions.get("dx")
    assert (applied.mission.name, applied.mission.status) == ("Developer Experience", "active")
    assert json.loads(applied.mission.source) == FILE
    build, onboarding = missions.pillars(applied.mission)
    assert [one.pillar.slug for one in (build, onboarding)] == ["build", "onboarding"]
    assert [(one.description, one.status) for one in build.strategies] == [
        ("Replace slow loaders", "active"),
        ("Cache", "proposed"),
    ]
    assert [(one.slug, one.target, one.direction, one.collector_config) for one in build.metrics] == [
        ("build-time", 60.0, "down", {"type": "manual"}),
        ("cache-hits", 90.0, "up", {"type": "manual"}),
    ]
    assert replayed(store, applied.mission.id) == []


@pytest.mark.spec("M1")
def test_a_mission_has_a_chat_and_each_pillar_a_chat_and_a_todo_chat(
    missions: Missions, conversations: Conversations
) -> None:
    mission = apply(missions, FILE).mission
    of_mission = {"missionId": mission.id, "missionSlug": "dx"}
    assert mission.conversation_id == "mission-dx"
    assert conversations.get("mission-dx").title == "Developer Experience"
    assert metadata(conversations, "mission-dx") == {"channel": "mission", **of_mission}
    for one, name in zip(missions.pillars(mission), ("Build Performance", "Onboarding"), strict=True):
        pillar = one.pillar
        of_pillar = {**of_mission, "pillarId": pillar.id, "pillarSlug": pillar.slug}
        assert (pillar.conversation_id, pillar.todo_conversation_id) == (
            f"mission-dx.{pillar.slug}",
            f"mission-dx.{pillar.slug}.todos",
        )
        assert conversations.get(pillar.conversation_id).title == name
        assert conversations.get(pillar.todo_conversation_id).title == f"[TODOs] {name}"
        assert metadata(conversations, pillar.conversation_id) == {"channel": "pillar", **of_pillar}
        assert metadata(conversations, pillar.todo_conversation_id) == {"channel": "pillar-todo", **of_pillar}


@pytest.mark.spec("M1")
def test_a_conversation_that_has_the_name_of_a_chat_already_is_left_alone(
    missions: Missions, conversations: Conversations
) -> None:
    for taken in ("mission-dx", "mission-dx-2", "mission-dx.build.todos"):
        conversations.add_message(Scope(taken, ANN.actor), MessageRole.USER, "mine")
    mission = apply(missions, FILE).mission
    build, _ = missions.pillars(mission)
    assert mission.conversation_id == "mission-dx-3"
    assert build.pillar.conversation_id == "mission-dx.build"
    assert build.pillar.todo_conversation_id == "mission-dx.build.todos-2"
    assert metadata(conversations, "mission-dx") == {}


@pytest.mark.spec("M1")
@pytest.mark.parametrize("role", [Role.LEAD, Role.OWNER, Role.WORKER, Role.SUPERVISOR])
def test_whoever_works_in_a_mission_does_not_say_what_it_is(missions: Missions, store: Store, role: Role) -> None:
    apply(missions, FILE)
    other = Scope("s", Actor(role, "agent"))
    with nothing_changes(store):
        with pytest.raises(NotAllowed, match="may not apply a mission file"):
            apply(missions, changed(name="Mine"), other)
        with pytest.raises(NotAllowed, match="may not archive a mission"):
            missions.archive(other, "dx", "enough")


@pytest.mark.spec("M1")
def test_what_was_not_made_by_us_is_noticed(missions: Missions, store: Store) -> None:
    mission = apply(missions, FILE).mission
    by_hand(store, "UPDATE missions SET source = '{}' WHERE id = :id", id=mission.id)
    with pytest.raises(StoreDamaged, match="Mission 'dx' is not what was written"):
        missions.get("dx")


@pytest.mark.spec("M1", "X5")
@pytest.mark.parametrize(
    ("table", "column"),
    [("pillars", "name"), ("pillars", "status"), ("strategies", "description"), ("metrics", "unit")],
)
def test_rows_that_are_not_as_their_events_say_are_found(
    missions: Missions, store: Store, table: str, column: str
) -> None:
    mission = apply(missions, FILE).mission
    by_hand(store, f"UPDATE {table} SET {column} = 'archived'")
    assert replayed(store, mission.id)


# --- the same again ---------------------------------------------------------------------------------------


@pytest.mark.spec("M1")
def test_the_same_file_again_changes_nothing(missions: Missions, store: Store, clock: StoppedClock) -> None:
    first = apply(missions, FILE).mission
    clock.advance(days=1)
    with nothing_changes(store):
        again = apply(missions, FILE)
        assert (again.created, again.changes, again.mission) == (False, [], first)
        assert missions.preview(file.parse_value(FILE), json.dumps(FILE)).lines == []


@pytest.mark.spec("M1", "M7")
def test_another_wording_of_the_same_file_is_kept_since_trust_goes_by_every_character(missions: Missions) -> None:
    apply(missions, FILE)
    source = json.dumps(FILE, indent=2)
    applied = missions.apply(ANN, file.parse_mission(source), source)
    assert applied.changes == ["~ the text of the file; its meaning is unchanged"]
    assert missions.get("dx").source == source


@pytest.mark.spec("M1")
def test_what_is_exported_and_applied_changes_nothing_but_the_wording(missions: Missions) -> None:
    mission = apply(missions, FILE).mission
    exported = file.parse_value(mission.config).as_json()
    assert missions.preview(file.parse_value(exported)).lines == []


# --- changed ----------------------------------------------------------------------------------------------


@pytest.mark.spec("M1")
def test_a_changed_file_changes_the_mission_and_says_what(missions: Missions, store: Store) -> None:
    mission = apply(missions, FILE).mission
    raw = changed(
        description="",
        todo={"activeTodoLimit": 8},
        cadence={"cron": "0 9 * * 1"},
        templates=[{"slug": "audit", "title": "Audit"}],
        checks={"lint": {"command": ["make", "lint"]}},
    )
    build, onboarding = raw["pillars"]
    build["metrics"] = [{**build["metrics"][0], "target": 50, "warning": 70}]
    build["strategies"] = [{"description": "Replace slow loaders", "status": "done"}, {"description": "Measure"}]
    onboarding["metrics"] = [{"name": "Days", "target": 1, "direction": "down"}]
    raw["pillars"] = [onboarding, build, {"name": "Docs"}]
    lines = [
        "~ description: “Nobody waits for a machine.” → nothing",
        "~ todo.activeTodoLimit: 10 → 8",
        "~ cadence.cron: none → “0 9 * * 1”",
        "~ strategy of build, “Replace slow loaders”: active → done",
        "+ strategy of build: “Measure” (active)",
        "- strategy of build: “Cache” (proposed)",
        "+ pillar docs",
        "~ pillars: now in the order onboarding, build",
        "+ metric days",
        "~ metric build-time.target: 60 → 50",
        "~ metric build-time.warning: none → 70",
        "- metric cache-hits",
        "+ template audit",
        "+ check lint",
    ]
    with nothing_changes(store):
        preview = missions.preview(file.parse_value(raw))
    assert (preview.created, preview.lines) == (False, lines)
    applied = apply(missions, raw)
    assert (applied.created, applied.changes) == (False, lines)
    assert applied.mission.id == mission.id
    assert [(one.pillar.slug, [m.slug for m in one.metrics]) for one in missions.pillars(applied.mission)] == [
        ("onboarding", ["days"]),
        ("build", ["build-time"]),
        ("docs", []),
    ]
    assert missions.get("dx").config["todo"]["activeTodoLimit"] == 8
    assert replayed(store, mission.id) == []


@pytest.mark.spec("M1")
def test_a_pillar_that_is_gone_is_archived_and_comes_back_as_it_was(missions: Missions, store: Store) -> None:
    mission = apply(missions, FILE).mission
    before = missions.pillars(mission)[1].pillar
    applied = apply(missions, changed(pillars=FILE["pillars"][:1]))
    assert applied.changes == ["- pillar onboarding"]
    assert [one.pillar.slug for one in missions.pillars(mission)] == ["build"]
    assert apply(missions, FILE).changes == ["+ pillar onboarding"]
    assert missions.pillars(mission)[1].pillar == before
    assert replayed(store, mission.id) == []


@pytest.mark.spec("M1")
def test_a_metric_that_is_gone_is_archived_and_comes_back_with_its_readings(missions: Missions, store: Store) -> None:
    metrics = Metrics(store)
    mission = apply(missions, FILE).mission
    metrics.record(ANN, "dx", "cache-hits", 81.0)
    raw = changed()
    gone = raw["pillars"][0]["metrics"].pop()
    assert apply(missions, raw).changes == ["- metric cache-hits"]
    assert [view.metric.slug for view in metrics.views("dx")] == ["build-time"]
    raw["pillars"][1]["metrics"] = [gone]
    assert apply(missions, raw).changes == ["+ metric cache-hits"]
    (view,) = metrics.views("dx", "cache-hits")
    assert (view.pillar_slug, view.values) == ("onboarding", [81.0])
    assert replayed(store, mission.id) == []


@pytest.mark.spec("M1")
def test_a_metric_keeps_its_readings_when_it_goes_to_another_pillar(missions: Missions, store: Store) -> None:
    metrics = Metrics(store)
    apply(missions, FILE)
    metrics.record(ANN, "dx", "cache-hits", 81.0)
    raw = changed()
    raw["pillars"][1]["metrics"] = [raw["pillars"][0]["metrics"].pop()]
    assert apply(missions, raw).changes == ["~ metric cache-hits.pillar: “build” → “onboarding”"]
    assert metrics.views("dx", "cache-hits")[0].values == [81.0]


@pytest.mark.spec("M1")
def test_what_went_wrong_at_the_last_collection_outlives_a_changed_file(missions: Missions, store: Store) -> None:
    metrics = Metrics(store)
    mission = apply(missions, FILE).mission
    (metric, _) = missions.pillars(mission)[0].metrics
    metrics.record_failure(Scope("s", Actor(Role.SYSTEM, "collector")), metric.id, "no such program")
    raw = changed()
    raw["pillars"][0]["metrics"][0]["target"] = 30
    apply(missions, raw)
    (after, _) = missions.pillars(mission)[0].metrics
    assert (after.target, after.last_error) == (30.0, "no such program")
    assert replayed(store, mission.id) == []


@pytest.mark.spec("M1")
def test_a_pillar_with_open_todos_cannot_be_taken_out_of_the_file(missions: Missions, store: Store) -> None:
    apply(missions, FILE)
    first, second = add_todos(store, "onboarding", 2)
    smaller = changed(pillars=FILE["pillars"][:1])
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match="Pillar 'onboarding' is not in the file but has 2 open todos"):
            missions.preview(file.parse_value(smaller))
        with pytest.raises(IllegalTransition, match="Nothing was changed"):
            apply(missions, smaller)
    for todo_id in (first, second):
        MissionTodos(store).update(LEAD, "dx", todo_id, TodoAction.CANCEL, "the pillar goes")
    assert apply(missions, smaller).changes == ["- pillar onboarding"]


@pytest.mark.spec("M1", "M2", "M14")
def test_limits_below_what_is_in_use_are_said_and_nothing_is_lost(missions: Missions, store: Store) -> None:
    apply(missions, changed(todo={"activeTodoLimit": 3}))
    add_todos(store, "build", 5)
    applied = apply(missions, changed(todo={"activeTodoLimit": 2, "backlogTodoLimit": 1}))
    assert applied.warnings == [
        "todo.activeTodoLimit is 2, but 3 todos are active. They stay; new ones fit once fewer than 2 remain.",
        "todo.backlogTodoLimit is 1, but 2 todos are in the backlog. They stay; new ones fit once fewer than 1 remain.",
    ]
    none = apply(missions, changed(todo={"activeTodoLimit": 3, "backlogTodoLimit": 0}))
    assert none.warnings == [
        "todo.backlogTodoLimit is 0, but 2 todos are in the backlog. They stay; new ones do not fit."
    ]
    listed = MissionTodos(store).list("dx")
    assert Counter(todo.status.value for todo in listed.items) == {"pending": 3, "backlog": 2}
    with pytest.raises(IllegalTransition, match=r"Backlog limit \(0\) reached"):
        add_todos(store, "build", 1)


@pytest.mark.spec("M1", "M16")
def test_a_check_that_the_new_file_leaves_without_its_metric_or_command_is_said(
    missions: Missions, store: Store
) -> None:
    before = changed(checks={"tests": {"command": ["make", "test"]}})
    apply(missions, before)
    slug = before["pillars"][0]["metrics"][0]["slug"]
    checks = [{"metric": slug, "atMost": 3}, {"name": "tests"}, {"file": "a.txt"}]
    for check in checks:
        new = NewMissionTodo("build", "A", check=check)
        MissionTodos(store).create(LEAD, "dx", new)
    smaller = {**before, "checks": {}, "pillars": [{**pillar, "metrics": []} for pillar in before["pillars"]]}
    told = missions.preview(file.parse_value(smaller)).warnings
    assert [line.partition(" (")[0] for line in told] == [
        f"metric {slug} is not in the file, but the check of 1 todo",
        "check tests is not in the file, but the check of 1 todo",
    ]
    assert apply(missions, smaller).warnings == told
    assert apply(missions, before).warnings == []


@pytest.mark.spec("M1")
def test_a_mission_without_pillars_is_possible_and_said(missions: Missions) -> None:
    assert apply(missions, {"name": "Later"}).warnings == [
        "The mission has no pillars. Every todo belongs to a pillar."
    ]


@pytest.mark.spec("M1")
def test_a_change_that_fails_half_way_leaves_everything_as_it_was(
    missions: Missions, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is gone")

    apply(missions, FILE)
    monkeypatch.setattr(mission_repository, "insert_metric", fail)
    raw = changed(name="Another", pillars=[*FILE["pillars"], {"name": "Docs"}])
    raw["pillars"][1]["metrics"] = [{"name": "Days", "target": 1, "direction": "down"}]
    with nothing_changes(store), pytest.raises(OSError, match="the disk is gone"):
        apply(missions, raw)


# --- looked at, and archived ------------------------------------------------------------------------------


@pytest.mark.spec("M1")
def test_a_mission_that_is_not_there_is_named_with_the_nearest(missions: Missions) -> None:
    with pytest.raises(
        NotFound, match=r"There is no mission 'dx'; no missions exist. Create one with `punchlist mission apply FILE`"
    ):
        missions.get("dx")
    apply(missions, changed(slug="developer-experience"))
    with pytest.raises(NotFound, match=r"Did you mean developer-experience\?"):
        missions.get("developer-experiance")


@pytest.mark.spec("M1")
def test_an_archived_mission_is_read_but_changes_no_more(missions: Missions, store: Store) -> None:
    apply(missions, FILE)
    archived = missions.archive(ANN, "dx", " reached ")
    assert archived == missions.get("dx")
    assert (archived.status, missions.list(), missions.list(archived=True)) == ("archived", [], [archived])
    assert replayed(store, archived.id) == []
    assert trail(store, event_stream(archived.id))[-1].reason == "reached"
    with nothing_changes(store):
        with pytest.raises(Conflict, match=r"The slug 'dx' belongs to a mission that was archived on 2026-02-21"):
            apply(missions, FILE)
        with pytest.raises(Conflict, match="belongs to a mission that was archived"):
            missions.preview(file.parse_value(FILE))
        with pytest.raises(IllegalTransition, match=r"is archived. Unarchive it"):
            missions.archive(ANN, "dx", "again")
        with pytest.raises(IllegalTransition, match=r"is archived. Unarchive it"):
            add_todos(store, "build", 1)
        assert not missions.take_tick(ANN, archived.id, "2026-02-23T09:00:00.000000Z")


@pytest.mark.spec("M1")
def test_an_archived_mission_is_brought_back_by_a_person_for_a_reason(missions: Missions, store: Store) -> None:
    apply(missions, FILE)
    missions.pause(ANN, "dx", "holidays")
    archived = missions.archive(ANN, "dx", "reached")
    with nothing_changes(store):
        with pytest.raises(NotAllowed, match="may not unarchive a mission"):
            missions.unarchive(LEAD, "dx", "more to do")
        with pytest.raises(InvalidInput, match="reason: must be 1 to"):
            missions.unarchive(ANN, "dx", " ")
        with pytest.raises(NotFound, match="no mission"):
            missions.unarchive(ANN, "dy", "more to do")
    back = missions.unarchive(ANN, "dx", "more to do")
    assert (back.status, back.pause_reason, missions.list()) == ("active", "holidays", [back])
    assert replayed(store, archived.id) == []
    assert trail(store, event_stream(archived.id))[-1].reason == "more to do"
    add_todos(store, "build", 1)
    with nothing_changes(store), pytest.raises(IllegalTransition, match="is not archived"):
        missions.unarchive(ANN, "dx", "again")


@pytest.mark.spec("M1")
def test_a_mission_is_archived_for_a_reason_and_not_while_somebody_works(missions: Missions, store: Store) -> None:
    apply(missions, FILE)
    (todo_id,) = add_todos(store, "build", 1)
    MissionTodos(store).update(LEAD, "dx", todo_id, TodoAction.START, "go")
    with nothing_changes(store):
        with pytest.raises(InvalidInput, match="reason: must be 1 to"):
            missions.archive(ANN, "dx", " ")
        with pytest.raises(IllegalTransition, match="has 1 todo in progress"):
            missions.archive(ANN, "dx", "enough")


@pytest.mark.spec("M12")
@pytest.mark.parametrize("now", [24, 25], ids=["just then", "a day later"])
def test_a_moment_of_the_cadence_is_taken_once_and_never_after_a_later_one(
    missions: Missions, store: Store, clock: StoppedClock, now: int
) -> None:
    mission = apply(missions, FILE).mission
    monday, tuesday = "2026-02-23T09:00:00.000000Z", "2026-02-24T09:00:00.000000Z"
    clock.now = clock.now.replace(day=now)
    assert [missions.take_tick(ANN, mission.id, tick) for tick in (tuesday, tuesday, monday)] == [True, False, False]
    assert missions.get("dx").last_tick == tuesday
    assert apply(missions, changed(name="Another")).mission.last_tick == tuesday
    assert replayed(store, mission.id) == []
    assert not missions.take_tick(ANN, "no such mission", tuesday)


@pytest.mark.spec("M12")
def test_a_moment_before_one_that_a_fast_clock_took_is_taken_once(
    missions: Missions, store: Store, clock: StoppedClock
) -> None:
    mission = apply(missions, FILE).mission
    monday, tuesday = "2026-02-23T09:00:00.000000Z", "2026-02-24T09:00:00.000000Z"
    assert missions.take_tick(ANN, mission.id, tuesday)
    clock.now = clock.now.replace(day=23)
    assert [missions.take_tick(ANN, mission.id, tick) for tick in (monday, monday, tuesday)] == [True, False, False]
    assert missions.get("dx").last_tick == tuesday
    assert replayed(store, mission.id) == []


@pytest.mark.spec("M1", "M10")
def test_what_is_posted_to_a_chat_is_a_message_of_it(
    missions: Missions, conversations: Conversations, store: Store
) -> None:
    mission = apply(missions, FILE).mission
    with store.write() as tx:
        posted = chats.post(tx, LEAD, mission.conversation_id, NoticeKind.NOTE, "Monday's cycle is over.")
    assert conversations.messages(mission.conversation_id) == [posted]
    assert (posted.role, posted.kind, posted.position) == ("system", "note", 1)
    event = trail(store, f"conversation:{mission.conversation_id}")[-1]
    assert (event.action, event.actor, event.subject) == ("say", "lead:lead", posted.id)
    for conversation_id, content, error in (("nowhere", "x", NotFound), ("mission-dx", "a\0b", InvalidInput)):
        with nothing_changes(store), pytest.raises(error), store.write() as tx:
            chats.post(tx, LEAD, conversation_id, NoticeKind.NOTE, content)


# --- several at once --------------------------------------------------------------------------------------


def at_once(database: str, *files: list[str]) -> list[list[str]]:
    """What came of each file, for processes that apply theirs at the same moment."""
    command = [sys.executable, "-m", "tests.contract.applier", database]
    started = [
        subprocess.Popen(
            [*command, json.dumps(one)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for one in files
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.communicate(timeout=60)[0]) for process in started]


@pytest.mark.spec("M1", "X7")
def test_of_two_processes_that_make_one_mission_one_does_and_nothing_is_there_twice(
    missions: Missions, store: Store, database: str, conversations: Conversations
) -> None:
    sources = [json.dumps(changed(slug=f"dx-{number}", name=f"Goal {number}")) for number in range(10)]
    outcomes = at_once(database, sources, sources)
    assert [sorted(pair) for pair in zip(*outcomes, strict=True)] == [["made", "same"]] * 10
    made = missions.list()
    assert len(made) == 10
    assert {mission.conversation_id for mission in made} == {f"mission-dx-{number}" for number in range(10)}
    assert len(newest_sessions(store, 1_000)) == 10 * 5
    assert [replayed(store, mission.id) for mission in made] == [[]] * 10


@pytest.mark.spec("M1", "X7")
def test_two_processes_that_change_one_mission_leave_it_as_one_of_their_files_says(
    missions: Missions, store: Store, database: str
) -> None:
    mission = apply(missions, FILE).mission
    files = [
        [
            json.dumps(changed(name=f"{who} {time}", pillars=[*FILE["pillars"], {"name": f"{who} {time}"}]))
            for time in range(10)
        ]
        for who in ("Ann", "Bob")
    ]
    outcomes = at_once(database, *files)
    assert Counter(one for each in outcomes for one in each) == {"changed": 20}
    final = missions.get("dx")
    assert final.name in ("Ann 9", "Bob 9")
    assert [one.pillar.name for one in missions.pillars(final)] == ["Build Performance", "Onboarding", final.name]
    assert replayed(store, mission.id) == []
    assert len(everything(store)["pillars"]) == 2 + 20
