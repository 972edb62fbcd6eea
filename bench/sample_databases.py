"""Databases of a given size, cached between runs. Their names contain a hash of the code that created them.

They pass `punchlist db check`.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from bench import rows
from bench.rows import ACTOR, all_rows, insert
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel import events
from punchlist.plan import model
from punchlist.storage import migrate
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import SCHEMA_VERSION

CACHE: Final = Path(__file__).parent / "results" / "cache"
SCRATCH: Final = "bench-"
"""Prefix of the sessions that a benchmark creates; the next benchmark deletes them."""

CHECKLIST: Final = [
    {"content": f"Read chapter {number}", "activeForm": f"Reading chapter {number}", "status": "pending"}
    for number in range(1, 11)
]


def database(todos: int) -> Path:
    """A database with this many plan todos, without changes of earlier benchmarks."""
    path = CACHE / f"{SCHEMA_VERSION}-{_fingerprint()}-{todos}.db"
    if path.exists():
        _delete_scratch(path)
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    for stale in CACHE.glob(f"*-{todos}.db*"):
        stale.unlink()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        unfinished = Path(folder) / path.name
        _fill(unfinished, todos)
        unfinished.rename(path)
    return path


def _fingerprint() -> str:
    sources = [Path(file) for file in (model.__file__, events.__file__, rows.__file__, __file__)]
    sources += sorted(migrate.FOLDER.glob("*.sql"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


def _fill(path: Path, todos: int) -> None:
    open_store(str(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # No other process reads the file yet, and an unfinished one is deleted.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -200000")
        connection.execute("BEGIN")
        indexes = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql > ''").fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        for session in all_rows(todos):
            for table, values in session.items():
                connection.executemany(insert(table), values)
        for _, definition in indexes:
            connection.execute(definition)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
        names = [name for (name,) in connection.execute("SELECT id FROM conversations").fetchall()]
    with closing(open_store(str(path))) as store:
        checklists = Checklists(store, Conversations(store))
        for name in names:
            checklists.rewrite(Scope(name, ACTOR), CHECKLIST)


def _delete_scratch(path: Path) -> None:
    tables = ("turn_todos", "checklists", "messages", "events", "turns")
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, owner in {**dict.fromkeys(tables, "conversation_id"), "conversations": "id"}.items():
            connection.execute(
                f"DELETE FROM {table} WHERE {owner} >= ? AND {owner} < ?", [SCRATCH, SCRATCH + "\U0010ffff"]
            )


def sample_turns(path: Path, count: int) -> list[TurnScope]:
    """Turns evenly spread over a database."""
    with closing(sqlite3.connect(path)) as connection:
        (turns,) = connection.execute("SELECT count(*) FROM turns").fetchone()
        found = connection.execute(
            "SELECT conversation_id, id FROM turns WHERE rowid % ? = 0 LIMIT ?", [turns // count, count]
        ).fetchall()
    return [TurnScope(session, ACTOR, turn) for session, turn in found]
