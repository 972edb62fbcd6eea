"""What rows and events cost: `python -m bench.scale DATABASE_URL [TODOS]`. The figures of docs/scale.md.

Creates and starts todos through the services, and prints the time and the size per todo, event and run, the bytes of a
row of each table with its indexes, and the time of what every worker does again and again. Times are of this process'
processor on SQLite, where it does all the work, and of the wall clock on PostgreSQL.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any, Final, cast

from punchlist.conversations.service import Conversations
from punchlist.engine.periodic import PeriodicTasks
from punchlist.kernel.events import Actor, Role
from punchlist.missions.config import file
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.service import Missions
from punchlist.missions.todos.lifecycle import TodoAction
from punchlist.missions.todos.service import MissionTodos
from punchlist.runs.queue import RunQueue
from punchlist.runs.workers import WorkerRegistration
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

PERSON: Final = MissionScope("scale", Actor(Role.PERSON, "bench"))
DEFAULT_TODOS: Final = 500


def main(url: str, count: int) -> None:
    with closing(open_store(url)) as store:
        before = _size(store)
        clock = process_time if store.database.kind == "sqlite" else perf_counter
        begin = clock()
        for number in range(count):
            slug = f"scale-{number // 50}"
            if number % 50 == 0:
                _apply(store, slug)
            _work(store, slug, number)
        seconds = clock() - begin
        events, runs = _count(store, "events"), _count(store, "runs")
        grown = _size(store) - before
        print(f"{count} todos: {seconds / count * 1e3:.2f} ms and {grown / count:,.0f} bytes each")
        print(f"{events} events: {seconds / events * 1e3:.3f} ms and {grown / events:,.0f} bytes each; {runs} runs")
        queue = RunQueue(store, "bench")
        _time(clock, "idle poll of the queue", lambda: queue.ready(8))
        missions = len(Missions(store, Conversations(store)).list())
        tasks = PeriodicTasks(
            cast("Any", SimpleNamespace(store=store, missions=Missions(store, Conversations(store)))), "bench"
        )
        _time(clock, f"a pass of the periodic tasks over {missions} missions", tasks._run)
        for table, rows, size in _sizes(store):
            print(f"{table}: {rows} rows, {size / rows:,.0f} bytes each with indexes")
        registration = WorkerRegistration(store, "bench", 8)
        registration.renew()


def _apply(store: Store, slug: str) -> None:
    source = json.dumps({"name": slug, "slug": slug, "pillars": [{"name": "Speed", "slug": "speed"}]})
    Missions(store, Conversations(store)).apply(PERSON, file.parse_mission(source), source)


def _work(store: Store, slug: str, number: int) -> None:
    """A todo from its creation to its completion."""
    todos = MissionTodos(store)
    todo = todos.create(PERSON, slug, NewMissionTodo("speed", f"todo {number}", "Work to do. " * 20)).todo
    todos.update(PERSON, slug, todo.id, TodoAction.START, "bench")
    todos.complete(PERSON, slug, todo.id, "done")


def _time(clock: Callable[[], float], name: str, call: Callable[[], object]) -> None:
    call()
    begin = clock()
    for _ in range(50):
        call()
    print(f"{name}: {(clock() - begin) / 50 * 1e3:.2f} ms")


def _sizes(store: Store) -> Iterator[tuple[str, int, int]]:
    """Table, number of rows, and bytes including indexes."""
    for table in ("mission_todos", "runs", "events", "messages", "turns"):
        if count := _count(store, table):
            if store.database.kind == "postgresql":
                sql = f"SELECT pg_total_relation_size('{table}')"
            else:
                names = f"SELECT name FROM sqlite_master WHERE tbl_name = '{table}'"
                sql = f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({names})"
            with store.read() as tx:
                yield table, count, int(tx.raw(sql)[0][0])


def _count(store: Store, table: str) -> int:
    with store.read() as tx:
        return int(tx.raw(f"SELECT count(*) FROM {table}")[0][0])


def _size(store: Store) -> int:
    with store.read() as tx:
        if store.database.kind == "postgresql":
            return int(tx.raw("SELECT pg_database_size(current_database())")[0][0])
        pages, size = tx.raw("PRAGMA page_count")[0][0], tx.raw("PRAGMA page_size")[0][0]
        return int(pages) * int(size)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else DEFAULT_TODOS)
