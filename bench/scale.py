"""What rows and events cost: `python -m bench.scale DATABASE_URL [TODOS]`. The figures of docs/scale.md.

Creates and starts todos through the services, and prints the time and the size per todo, event and run.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from time import perf_counter
from typing import Final

from punchlist.conversations.service import Conversations
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
        begin = perf_counter()
        for number in range(count):
            slug = f"scale-{number // 50}"
            if number % 50 == 0:
                _apply(store, slug)
            _work(store, slug, number)
        seconds = perf_counter() - begin
        events, runs = _count(store, "events"), _count(store, "runs")
        grown = _size(store) - before
        print(f"{count} todos: {seconds / count * 1e3:.2f} ms and {grown / count:,.0f} bytes each")
        print(f"{events} events: {seconds / events * 1e3:.3f} ms and {grown / events:,.0f} bytes each; {runs} runs")
        queue = RunQueue(store, "bench")
        _time("idle poll of the queue", lambda: queue.ready(8))
        _time("missions read by the periodic task", lambda: Missions(store, Conversations(store)).list())
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


def _time(name: str, call: object) -> None:
    assert callable(call)
    call()
    begin = perf_counter()
    for _ in range(50):
        call()
    print(f"{name}: {(perf_counter() - begin) / 50 * 1e3:.2f} ms")


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
