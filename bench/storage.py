"""The store on SQLite: one plan write, one plan list, and both with a million rows in the table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Final

from bench.figures import Bench, Figure, Limits, Operation, interleave, runs
from bench.rows import ACTOR, COLUMNS, ITEM, TODOS_PER_TURN, Row, insert, plan_rows
from bench.sample_databases import SCRATCH, database, sample_turns
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel.clock import system_clock, timestamp
from punchlist.kernel.ids import new_id
from punchlist.plan.model import NewTodo
from punchlist.plan.service import Plans
from punchlist.plan.validation import MAX_PLAN
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

EACH: Final = 3
"""Consecutive operations of one side before the other side runs."""

TURNS: Final = 10
"""Turns whose lists are read, spread over the table."""

APPENDS: Final = 100
SMALL_PLAN: Final = 100
LARGE_PLAN: Final = MAX_PLAN - 2 * APPENDS

LIST: Final = (
    f"SELECT {', '.join(COLUMNS['turn_todos'])} FROM turn_todos "
    "WHERE turn_id = ? AND status IN ('pending', 'in_progress') ORDER BY priority, created_at"
)


def measure(bench: Bench) -> Iterator[Figure]:
    sizes = bench.sizes
    few, many = database(sizes.few), database(sizes.many)
    small, large = open_store(str(few)), open_store(str(many))
    writes = runs(sizes.rounds, EACH)
    with (
        closing(small),
        closing(large),
        closing(bare_copy(few, bench.folder / "bare.db")) as bare,
        closing(bare_connection(many)) as reader,
    ):

        def pairs(ours: Operation, raw: Operation) -> list[list[float]]:
            return interleave(ours, raw, rounds=sizes.rounds, each=EACH)

        turns = open_turns(small, writes)
        ours, raw = pairs(service_writes(small, turns), bare_writes(bare, turns))
        yield Figure("plan write", ours, raw, Limits(times=3.0))

        scopes = sample_turns(many, TURNS)
        ours, raw = pairs(service_lists(large, scopes), bare_lists(reader, scopes))
        yield Figure(f"plan list of {TODOS_PER_TURN} in {sizes.many:,} rows", ours, raw, Limits(times=2.5))

        ours, raw = pairs(
            service_writes(large, open_turns(large, writes)), service_writes(small, open_turns(small, writes))
        )
        yield Figure(f"plan write, {sizes.many:,} against {sizes.few:,} rows", ours, raw, Limits(times=1.5))

        ours, raw = interleave(appends(small, LARGE_PLAN), appends(small, SMALL_PLAN), rounds=APPENDS)
        name = f"create_todo at the end of a plan of {LARGE_PLAN:,} against {SMALL_PLAN}"
        yield Figure(name, ours, raw, Limits(times=2.0))

        ours, raw = pairs(service_lists(large, scopes), service_lists(small, sample_turns(few, TURNS)))
        yield Figure(f"plan list, {sizes.many:,} against {sizes.few:,} rows", ours, raw, Limits(times=1.5))


def open_turns(store: Store, writes: int) -> list[TurnScope]:
    """Enough turns for this many writes, with ten todos per plan."""
    conversations = Conversations(store)
    scopes = [Scope(SCRATCH + new_id(), ACTOR) for _ in range(0, writes, TODOS_PER_TURN)]
    return [TurnScope(scope.conversation_id, ACTOR, conversations.open_turn(scope).id) for scope in scopes]


def service_writes(store: Store, turns: list[TurnScope]) -> Operation:
    """Adds a todo to a plan, ten times per turn."""
    plans, items = Plans(store), [ITEM]
    line = iter([turn for turn in turns for _ in range(TODOS_PER_TURN)])
    return lambda: plans.create(next(line), items)


def appends(store: Store, todos: int) -> Operation:
    """Adds a todo to the end of a plan that has this many."""
    plans, (turn,) = Plans(store), open_turns(store, 1)
    for start in range(0, todos, SMALL_PLAN):
        plans.create(turn, [NewTodo(f"todo {start + number}") for number in range(SMALL_PLAN)])
    titles = iter(range(APPENDS * 2))
    return lambda: plans.create(turn, [NewTodo(f"one more {next(titles)}")])


def service_lists(store: Store, scopes: list[TurnScope]) -> Operation:
    plans, line = Plans(store), cycle(scopes)
    return lambda: plans.list(next(line))


def bare_writes(connection: sqlite3.Connection, turns: list[TurnScope]) -> Operation:
    """Inserts the same two rows, with all values computed in advance."""
    line = iter(expected_rows(turns))
    execute, todo_sql, event_sql = connection.execute, insert("turn_todos"), insert("events")

    def write() -> None:
        todo, event = next(line)
        execute("BEGIN IMMEDIATE")
        execute(todo_sql, todo)
        execute(event_sql, event)
        execute("COMMIT")

    return write


def expected_rows(turns: list[TurnScope]) -> list[tuple[Row, Row]]:
    """Rows of todos and their events, as `service_writes` would write them."""
    now = timestamp(system_clock())
    return [rows for turn in turns for rows in plan_rows(turn.conversation_id, turn.turn_id, now, TODOS_PER_TURN)]


def bare_lists(connection: sqlite3.Connection, scopes: list[TurnScope]) -> Operation:
    line = cycle([(scope.turn_id,) for scope in scopes])
    return lambda: connection.execute(LIST, next(line)).fetchall()


def bare_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def bare_copy(source: Path, target: Path) -> sqlite3.Connection:
    """A separate file with the two tables that a plan write touches, and their indexes and rows."""
    connection = bare_connection(target)
    connection.execute("ATTACH ? AS source", [str(source)])
    definitions = connection.execute(
        "SELECT sql FROM source.sqlite_master WHERE tbl_name IN ('turn_todos', 'events') AND sql IS NOT NULL "
        "ORDER BY type = 'index'"
    ).fetchall()
    for (sql,) in definitions:
        connection.execute(sql)
    for name in ("turn_todos", "events"):
        connection.execute(f"INSERT INTO {name} SELECT * FROM source.{name}")
    connection.execute("DETACH source")
    return connection
