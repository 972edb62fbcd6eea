"""The views on both databases: 10,000 todos, 100,000 messages, 100,000 readings, 10,000 runs and 10,000 open requests;
for one todo, 25 rounds of work with 200 calls and 200 messages each.

The 95th percentile of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from time import perf_counter
from types import SimpleNamespace
from typing import Any, Final, cast

from bench.figures import Bench, Figure, Limits
from bench.missions import ended_todo
from bench.postgres import server
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import NewMessage, StoredTurn
from punchlist.conversations.service import Conversations
from punchlist.kernel.clock import system_clock, timestamp
from punchlist.kernel.events import Actor, Change, Role
from punchlist.kernel.ids import new_id
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import event_stream
from punchlist.missions.config import file
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.transitions import OVERDUE
from punchlist.missions.metrics import repository as metric_repository
from punchlist.missions.model import Escalation, MetricReading, MissionScope, NewMissionTodo
from punchlist.missions.service import Missions
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.service import MissionTodos
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import RunAction, RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.runs.service import Runs
from punchlist.storage import event_log
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.toolcalls import repository as call_repository
from punchlist.toolcalls.approval_store import Approvals
from punchlist.toolcalls.stored_call import StoredCall
from punchlist.views.board import BoardFilter, read_board
from punchlist.views.chat import read_chat
from punchlist.views.conversations import read_conversations
from punchlist.views.inbox import Inbox
from punchlist.views.live import LiveFeed, read_activity
from punchlist.views.metrics import read_metric
from punchlist.views.mission_chats import read_mission_chats
from punchlist.views.mission_overview import read_overview
from punchlist.views.runs import read_runs
from punchlist.views.search import read_search
from punchlist.views.search_index import catch_up
from punchlist.views.series import read_series
from punchlist.views.todo_detail import read_detail
from punchlist.views.todo_evidence import read_todo_evidence
from punchlist.views.todo_transcript import read_newest, read_todo_transcript

SLUG: Final = "bench"
WIDE: Final = "wide"
METRIC: Final = "build-time"
PERSON: Final = MissionScope("bench", Actor(Role.PERSON, "bench"))
LIMIT: Final = 0.025
ROUNDS: Final = 25
CALLS_PER_ROUND: Final = 200
_METRIC: Final = {"name": "Build time", "slug": METRIC, "target": 60, "direction": "down"}
FILE: Final = json.dumps(
    {"name": "Bench", "slug": SLUG, "pillars": [{"name": "Speed", "slug": "speed", "metrics": [_METRIC]}]}
)


def measure(bench: Bench) -> Iterator[Figure]:
    quick = bench.sizes.rounds < 1_000
    todos, rows = (200, 1_000) if quick else (10_000, 100_000)
    yield from _figures("SQLite", str(bench.folder / "views.db"), todos, rows)
    with server(bench.folder / "postgres") as url:
        yield from _figures("PostgreSQL", url, todos, rows)


def _figures(database: str, url: str, todos: int, rows: int) -> Iterator[Figure]:
    with closing(open_store(url)) as store:
        todo_id, chat = fill(store, todos, rows)
        calls_of_todo = work(store, todo_id, chat, ROUNDS, 10 if todos < 1_000 else CALLS_PER_ROUND)
        middle_call, last_page = str(calls_of_todo // 2), _last_page(store, todo_id)
        escalate(store, todos)
        measure_more(store, min(rows, 1_000))
        newest = read_activity(store, since=system_clock()).last
        while not catch_up(store):
            pass
        inbox = Inbox(cast("Any", SimpleNamespace(store=store, approvals=Approvals(store))))
        calls: dict[str, Callable[[], Any]] = {
            "board": lambda: read_board(store, SLUG, limit=100),
            "board with archived todos": lambda: read_board(store, SLUG, BoardFilter(archived=True), limit=100),
            "board, search without a match": lambda: read_board(
                store, SLUG, BoardFilter(search="nothing", archived=True), limit=100
            ),
            f"todo detail, {calls_of_todo:,} calls": lambda: read_detail(store, todo_id),
            "todo evidence, from the middle": lambda: read_todo_evidence(store, todo_id, cursor=middle_call),
            "todo transcript": lambda: read_todo_transcript(store, todo_id),
            "todo transcript, last page": lambda: read_todo_transcript(store, todo_id, cursor=last_page),
            "todo transcript, newest messages": lambda: read_newest(store, todo_id, limit=100),
            "chat, newest": lambda: read_chat(store, chat),
            "chat, from the middle": lambda: read_chat(store, chat, before=rows // 2),
            "metric, all readings": lambda: read_metric(store, SLUG, METRIC),
            "metric, 30 days": lambda: read_metric(store, SLUG, METRIC, since=system_clock() - timedelta(days=30)),
            "runs": lambda: read_runs(store),
            "runs of a mission that failed": lambda: read_runs(store, mission=SLUG, status=RunStatus.FAILED),
            "activity since a moment": lambda: read_activity(
                store, mission=SLUG, since=system_clock() - timedelta(days=1)
            ),
            "mission page": lambda: read_overview(store, SLUG),
            "mission page, 18 metrics with 1,000 readings each": lambda: read_overview(store, WIDE),
            "chats of a mission": lambda: read_mission_chats(store, SLUG),
            "series, 30 days": lambda: read_series(store, SLUG),
            f"inbox, first page of {todos:,} requests": inbox.page,
            f"inbox, one of {todos:,} requests": lambda: inbox.find(str(todos // 2)),
            "inbox, requests of a todo": lambda: inbox.about_todo(todo_id),
            "inbox, requests of a chat": lambda: inbox.from_chat(chat),
            "conversations": lambda: read_conversations(store),
            "search": lambda: read_search(store, "todo 17"),
            "live, one poll": LiveFeed(store, newest).poll,
        }
        for name, call in calls.items():
            yield Figure(f"{database}: {name}, p95", [percentile(call, 40)], limits=Limits(seconds=LIMIT))


def percentile(call: Callable[[], Any], rounds: int) -> float:
    """The 95th percentile of the seconds of a call."""
    call()
    times = []
    for _ in range(rounds):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return sorted(times)[int(rounds * 0.95) - 1]


def fill(store: Store, todos: int, rows: int) -> tuple[str, str]:
    """The id of an ended todo with a run, and the chat with the messages."""
    missions = Missions(store, Conversations(store))
    mission = missions.apply(PERSON, file.parse_mission(FILE), FILE).mission
    [state] = missions.pillars(mission)
    pillar, [metric] = state.pillar, state.metrics
    for number in range(40):
        MissionTodos(store).create(PERSON, SLUG, NewMissionTodo(pillar.slug, f"todo {number}", "Work to do. " * 10))
    now, chat = system_clock(), pillar.todo_conversation_id
    ended = [
        ended_todo(mission, pillar.id, timestamp(now - timedelta(days=300) * number / todos)) for number in range(todos)
    ]
    times = [timestamp(now - timedelta(days=300) * number / rows) for number in range(rows)]
    with store.write() as tx:
        assert mission_repository.mission(tx, mission.id)
        for todo in ended:
            todo_repository.insert_todo(tx, todo)
        runs = [_run(todo.id, mission.id, pillar.id, chat, todo.created_at) for todo in ended]
        tx.run_many(run_repository.insert_run, [run._asdict() for run in runs])
        readings = [
            MetricReading(new_id(), mission.id, metric.id, number, number % 97, at, "bench", "")
            for number, at in enumerate(times, start=1)
        ]
        metric_repository.insert_readings(tx, readings)
        message = NewMessage("system", "note", "A message about the work. " * 8)
        conversation_repository.add_messages(tx, chat, None, [message] * rows)
        steps = (
            (None, "pending", "create"),
            ("pending", "in_progress", "start"),
            ("in_progress", "completed", "complete"),
        )
        stream, actor = event_stream(mission.id), str(PERSON.actor)
        data = {"metrics_impacted": ["other"]}
        changes = [
            Change(
                stream, mission.conversation_id, actor, action, todo.id, before, after, "bench",
                data if before else {**todo._asdict(), "status": after, "priority": todo.priority.value},
            )
            for todo in ended
            for before, after, action in steps
        ]  # fmt: skip
        changes += [
            Change(stream, mission.conversation_id, actor, "record_reading", reading.id, None, None, "bench", {})
            for reading in readings
        ]
        event_log.append(tx, *changes)
    with store.write() as tx:
        # Otherwise a background process of PostgreSQL does this, some time later.
        tx.raw_step("ANALYZE")
    return ended[0].id, chat


def work(store: Store, todo_id: str, chat: str, rounds: int, calls: int) -> int:
    """Add turns with messages and tool calls to the run of a todo; the number of calls."""
    [run] = Runs(store).for_todo(todo_id)
    arguments, now = '{"command": "make test"}', timestamp(system_clock())
    for number in range(rounds):
        with store.write() as tx:
            turn = StoredTurn(new_id(), chat, None, "owner", "completed", now, now, None, run.id)
            conversation_repository.add_turn(tx, turn)
            conversation_repository.add_messages(
                tx, chat, turn.id, [NewMessage("assistant", "note", "x" * 200)] * calls
            )
            first = number * calls + 1
            made = [
                StoredCall(
                    new_id(), chat, turn.id, first + place, "run_command", arguments, None, "success", None, None, "{}",
                    "", "", "12 passed\n" * 20, None, None, None, now, now, now,
                )
                for place in range(calls)
            ]  # fmt: skip
            for call in made:
                call_repository.insert_call(tx, call)
            data = {"turn_id": turn.id}
            event_log.append(
                tx,
                Change(
                    f"run:{run.id}", chat, "bench", RunAction.SET_TURN, run.id, run.status, run.status, "work", data
                ),
            )
    return rounds * calls


def _last_page(store: Store, todo_id: str) -> str | None:
    cursor = None
    while (page := read_todo_transcript(store, todo_id, cursor=cursor)).cursor is not None:
        cursor = page.cursor
    return cursor


def escalate(store: Store, count: int) -> None:
    """Open requests of the inbox."""
    now = timestamp(system_clock())
    with store.write() as tx:
        for id, mission_id in tx.raw(f"SELECT id, mission_id FROM mission_todos ORDER BY id LIMIT {count:d}"):
            question = "TODO overdue. Extend or cancel? " * 5
            escalation = Escalation(new_id(), mission_id, id, OVERDUE, question, "open", now)
            escalation_repository.insert_escalation(tx, escalation)


def measure_more(store: Store, readings: int) -> None:
    """A mission with many metrics, a reading every hour."""
    pillars = [
        {
            "name": f"Pillar {number}",
            "slug": f"pillar-{number}",
            "metrics": [{**_METRIC, "slug": f"metric-{number}-{place}"} for place in range(3)],
        }
        for number in range(6)
    ]
    text = json.dumps({"name": "Wide", "slug": WIDE, "pillars": pillars})
    missions, now = Missions(store, Conversations(store)), system_clock()
    mission = missions.apply(PERSON, file.parse_mission(text), text).mission
    times = [timestamp(now - timedelta(hours=number)) for number in range(readings, 0, -1)]
    with store.write() as tx:
        for metric in mission_repository.metrics_of(tx, mission.id):
            metric_repository.insert_readings(
                tx,
                [
                    MetricReading(new_id(), mission.id, metric.id, number, number % 97, at, "bench", "")
                    for number, at in enumerate(times, start=1)
                ],
            )


def _run(todo_id: str, mission_id: str, pillar_id: str, chat: str, at: str) -> Run:
    return Run(
        id=new_id(),
        kind=RunKind.EXECUTE,
        status=RunStatus.DONE,
        mission_id=mission_id,
        pillar_id=pillar_id,
        todo_id=todo_id,
        conversation_id=chat,
        agent="owner",
        request="{}",
        created_by="bench",
        created_at=at,
        changed_at=at,
        ended_at=at,
        cost=0.5,
    )
