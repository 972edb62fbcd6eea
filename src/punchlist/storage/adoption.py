"""Adopts a SQLite file of another author, after showing what it contains."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from punchlist.errors import InvalidInput, NotAllowed
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
    "plan item": "SELECT count(*) FROM turn_todos",
    "checklist item": "SELECT coalesce(sum(json_array_length(items)), 0) FROM checklists",
    "queued message": "SELECT count(*) FROM queued_messages",
    "waiting approval": "SELECT count(*) FROM approvals WHERE status IN ('pending', 'escalated')",
    "mission": "SELECT count(*) FROM missions",
    "mission todo": "SELECT count(*) FROM mission_todos",
    "run": "SELECT count(*) FROM runs",
}


@dataclass(frozen=True, slots=True)
class DatabaseContent:
    """What a file contains that is offered for adoption."""

    counts: dict[str, int]
    foreign: tuple[tuple[str, str], ...]
    """Type and name of the schema objects that Punchlist did not create; adoption removes them."""
    state: tuple[object, ...]
    """The file as it was inspected."""

    def __str__(self) -> str:
        counted = ", ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for name, count in self.counts.items())
        if not self.foreign:
            return counted or "nothing"
        extra = ", ".join(f"{kind} {name}" for kind, name in self.foreign)
        return f"{counted or 'nothing'}; and objects of another author, which adoption removes: {extra}"


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
        except sqlite3.Error as error:
            raise InvalidInput(
                f"{file} is not a readable database ({error}). Run `punchlist trust --new-database` to set it aside."
            ) from error
    return DatabaseContent({name: count for name, count in counts.items() if count}, foreign, state)


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
