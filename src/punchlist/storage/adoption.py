"""Adopts a SQLite file of another author, after showing what it contains."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from punchlist.errors import InvalidInput, NotAllowed
from punchlist.kernel.text import excerpt
from punchlist.storage.schema_objects import expected_objects, stored_objects
from punchlist.storage.schema_version import READ_VERSION, unsupported_version
from punchlist.storage.trusted_files import check_file, sign
from punchlist.trust import Trust

SUFFIXES: Final = ("-wal", "-shm", "-journal")
_CONTENT_SUFFIXES: Final = ("", "-wal", "-journal")
"""SQLite applies both logs when it opens the file, so they are part of what it contains."""
_MAX_INSPECTED_BYTES: Final = 2_000_000_000
_DROP_ORDER: Final = ("trigger", "view", "index", "table")
_MAX_STEPS: Final = 50_000_000
_CONTENT: Final = {
    "session": "SELECT count(*) FROM conversations",
    "message": "SELECT count(*) FROM messages",
    "chat summary": "SELECT count(*) FROM chat_summaries",
    "plan item": "SELECT count(*) FROM turn_todos",
    "condition": "SELECT count(*) FROM todo_conditions",
    "checklist item": "SELECT coalesce(sum(json_array_length(items)), 0) FROM checklists",
    "queued message": "SELECT count(*) FROM queued_messages WHERE status = 'queued'",
    "tool call": "SELECT count(*) FROM tool_calls",
    "waiting approval": "SELECT count(*) FROM approvals WHERE status IN ('pending', 'escalated')",
    "rule of an answer": "SELECT count(*) FROM tool_rules",
    "access token": "SELECT count(*) FROM access_tokens",
    "stored answer of the HTTP API": "SELECT count(*) FROM answered_requests",
    "mission": "SELECT count(*) FROM missions",
    "strategy": "SELECT count(*) FROM strategies",
    "metric": "SELECT count(*) FROM metrics",
    "metric reading": "SELECT count(*) FROM metric_readings",
    "mission todo": "SELECT count(*) FROM mission_todos",
    "link": "SELECT count(*) FROM todo_links",
    "comment": "SELECT count(*) FROM todo_comments",
    "attached file": "SELECT count(*) FROM todo_files",
    "directive": "SELECT count(*) FROM directives",
    "recommendation": "SELECT count(*) FROM recommendations",
    "escalation": "SELECT count(*) FROM escalations",
    "claim": "SELECT count(*) FROM claims",
    "run": "SELECT count(*) FROM runs",
    "event": "SELECT count(*) FROM events",
}
"""What a person, an agent or a client can get to see, or a worker to do."""
_NOT_SHOWN: Final = frozenset(
    (
        *("turns", "pillars", "traces", "chain_anchor", "mission_spending", "budget_stops", "inbox_requests"),
        *("workers", "notifications", "turn_interrupts", "turn_status", "live_output", "punchlist_schema"),
        *("search_documents", "search_progress", "metric_rollups", "metric_marks"),
    )
)
"""Tables of parts of what is counted, records of processes, and what is computed from the rest."""
_QUOTED: Final = {
    "Agents would be told this": (
        "SELECT content FROM directives WHERE status = 'open' ORDER BY number",
        "SELECT content FROM queued_messages WHERE status = 'queued' ORDER BY position",
    ),
    "Waiting for your answer": (
        "SELECT question FROM approvals WHERE status IN ('pending', 'escalated') ORDER BY asked_at",
        "SELECT question FROM escalations WHERE status = 'open' ORDER BY asked_at",
    ),
    "Allowed without a question, if your key signed it": ("SELECT rule FROM tool_rules ORDER BY id",),
}
_CHECKED: Final = (
    "SELECT items FROM checklists",
    "SELECT verification FROM turn_todos WHERE verification IS NOT NULL",
    "SELECT completion_check FROM mission_todos WHERE completion_check IS NOT NULL",
    "SELECT collector FROM metrics",
    "SELECT content FROM messages WHERE kind IN ('goal', 'session_goal')",
)
"""JSON that can contain commands."""
_COMMANDS: Final = "Commands of checks and metrics, which agents and workers run"
_MAX_QUOTES: Final = 10
_MAX_QUOTE: Final = 200


class Quotes(NamedTuple):
    first: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class DatabaseContent:
    """What a file contains that is offered for adoption."""

    counts: dict[str, int]
    foreign: tuple[tuple[str, str], ...]
    """Type and name of the schema objects that Punchlist did not create; adoption removes them."""
    quotes: dict[str, Quotes]
    """By heading: texts that could act on agents, and commands."""
    state: tuple[object, ...]
    """The file as it was inspected."""

    def __str__(self) -> str:
        counted = ", ".join(f"{count:,} {name if count == 1 else _plural(name)}" for name, count in self.counts.items())
        if not self.foreign:
            return counted or "nothing"
        extra = ", ".join(f"{kind} {name}" for kind, name in self.foreign)
        return f"{counted or 'nothing'}; and objects of another author, which adoption removes: {extra}"

    def quoted(self) -> Iterator[str]:
        """The lines of the quotes."""
        for heading, quotes in self.quotes.items():
            yield f"{heading}:"
            yield from (f"  {text}" for text in quotes.first)
            if more := quotes.total - len(quotes.first):
                yield f"  and {more:,} more"


def inspect(file: Path) -> DatabaseContent:
    """Read what a file contains, in a private copy together with its log; the file itself is not opened."""
    check_file(file)
    state = _state(file)
    parts = {suffix: Path(f"{file}{suffix}") for suffix in _CONTENT_SUFFIXES if os.path.lexists(f"{file}{suffix}")}
    for part in parts.values():
        _check_part(part)
    size = sum(part.stat().st_size for part in parts.values())
    if size > _MAX_INSPECTED_BYTES:
        raise InvalidInput(f"{file} has {size:,} bytes, too many to inspect. Move it away.")
    with TemporaryDirectory(prefix="punchlist-") as folder:
        copy = Path(folder) / "copy.db"
        for suffix, part in parts.items():
            shutil.copyfile(part, f"{copy}{suffix}")
        try:
            with closing(_open_copy(copy)) as connection:
                foreign = tuple(_foreign_objects(connection))
                counts = {name: _count(connection, sql) for name, sql in _CONTENT.items()}
                quotes = {heading: _quotes(_texts(connection, sqls)) for heading, sqls in _QUOTED.items()}
                quotes[_COMMANDS] = _quotes(_commands(connection))
        except sqlite3.Error as error:
            raise InvalidInput(
                f"{file} is not a readable database ({error}). Run `punchlist trust --new-database` to set it aside."
            ) from error
    return DatabaseContent(
        {name: count for name, count in counts.items() if count},
        foreign,
        {heading: found for heading, found in quotes.items() if found.total},
        state,
    )


def adopt(file: Path, content: DatabaseContent, trust: Trust) -> None:
    """Make the inspected file this user's own, without the schema objects of another author."""
    if _state(file) != content.state:
        raise InvalidInput(f"{file} has changed since its content was shown. Run `punchlist trust` again.")
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("BEGIN IMMEDIATE")
        # Triggers first: dropping a table would delete its rows and run them.
        for kind, name in sorted(content.foreign, key=lambda each: _DROP_ORDER.index(each[0])):
            connection.execute(f"DROP {kind.upper()} IF EXISTS {_quoted(name)}")
        connection.execute("COMMIT")
    os.chmod(file, 0o600)
    sign(file, trust)


def set_aside(file: Path) -> Path:
    """Rename an untrusted file and its log, so that a new one can be created."""
    number = 1
    while (kept := file.with_name(f"{file.name}.untrusted-{number}")).exists() or kept.is_symlink():
        number += 1
    for suffix in ("", *SUFFIXES, "-made"):
        if os.path.lexists(f"{file}{suffix}"):
            os.rename(f"{file}{suffix}", f"{kept}{suffix}")
    return kept


def _check_part(part: Path) -> None:
    if part.is_symlink() or not part.is_file():
        raise NotAllowed(f"{part} is not a regular file. Remove it.")


def _state(file: Path) -> tuple[object, ...]:
    parts = [Path(f"{file}{suffix}") for suffix in _CONTENT_SUFFIXES]
    found = [os.lstat(part) if os.path.lexists(part) else None for part in parts]
    return tuple(each and (each.st_ino, each.st_size, each.st_mtime_ns) for each in found)


def _open_copy(copy: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(copy)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    steps = 0

    def count_steps() -> bool:
        nonlocal steps
        steps += 1
        return steps > _MAX_STEPS // 10_000

    connection.set_progress_handler(count_steps, 10_000)
    return connection


def _foreign_objects(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Objects that Punchlist did not create. Raises if one of its own is missing or was changed."""
    version = _recorded_version(connection)
    expected = {(each.type, each.name): each for each in expected_objects("sqlite", version)}
    stored = {(each.type, each.name): each for each in stored_objects(connection, "sqlite")}
    if changed := [name for (kind, name), each in expected.items() if stored.get((kind, name)) != each]:
        raise sqlite3.DatabaseError(f"{changed[0]} is missing or was changed")
    return sorted(stored.keys() - expected.keys())


def _recorded_version(connection: sqlite3.Connection) -> str:
    row = connection.execute(READ_VERSION).fetchone()
    version = str(row[0]) if row else ""
    if problem := unsupported_version("it", version):
        raise sqlite3.DatabaseError(str(problem))
    return version


def _plural(name: str) -> str:
    first, of, rest = name.partition(" of ")
    return (f"{first[:-1]}ies" if first.endswith("y") else f"{first}s") + of + rest


def _quotes(texts: Iterator[str]) -> Quotes:
    first = tuple(excerpt(text, _MAX_QUOTE) for text in islice(texts, _MAX_QUOTES))
    return Quotes(first, len(first) + sum(1 for _ in texts))


def _texts(connection: sqlite3.Connection, sqls: Iterable[str]) -> Iterator[str]:
    for sql in sqls:
        try:
            for (text,) in connection.execute(sql):
                yield str(text)
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise


def _commands(connection: sqlite3.Connection) -> Iterator[str]:
    for text in _texts(connection, _CHECKED):
        # What cannot be parsed is refused by every reader.
        with suppress(ValueError, RecursionError):
            yield from _commands_of(json.loads(text))


def _commands_of(value: object) -> Iterator[str]:
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key in ("check", "command") and isinstance(part, str):
            yield part
        elif key == "command" and isinstance(part, list):
            yield shlex.join(map(str, part))
        else:
            yield from _commands_of(part)


def _count(connection: sqlite3.Connection, sql: str) -> int:
    try:
        return int(connection.execute(sql).fetchone()[0])
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            # An older schema.
            return 0
        raise


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
