"""Copies made while others write, and going back to one (trust test 6)."""

from __future__ import annotations

import contextlib
import fcntl
import random
import sqlite3
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.contract.migrations import NEXT, become_newer
from tests.faults.processes import PATIENCE, Program, Writer, eventually, spin, together
from tests.faults.script import Script, expected, position

from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput, PunchlistError, StoreBusy, StoreError
from punchlist.storage import maintenance
from punchlist.storage.maintenance import backup, restore
from punchlist.storage.open import connect, open_store
from punchlist.storage.schema_version import READ_VERSION, SCHEMA_VERSION

SESSIONS = ("one", "two")


@pytest.mark.parametrize("databases", [1, pytest.param(20, marks=pytest.mark.soak)], ids=["seconds", "full"])
def test_every_copy_made_while_others_write_is_whole(tmp_path: Path, databases: int) -> None:
    for number in range(databases):
        folder = tmp_path / str(number)
        folder.mkdir()
        with ExitStack() as stack:
            address = str(folder / "punchlist.db")
            writers = {session: stack.enter_context(Writer(address, session)) for session in SESSIONS}
            for copy in range(8):
                assert _copied(address, folder / f"copy-{copy}.db", writers) == []


def _copied(address: str, copy: Path, writers: dict[str, Writer]) -> list[str]:
    """What is wrong with a copy that is made while the writers go on, at hundreds of changes a second."""
    for writer in writers.values():
        writer.wait_for(writer.acknowledged + 10)
    before = {session: writer.acknowledged for session, writer in writers.items()}
    store = connect(address)
    backup(store, copy)
    store.close()
    return _restored(copy.with_suffix("") / "punchlist.db", copy, before)


def _restored(place: Path, copy: Path, before: dict[str, int]) -> list[str]:
    """What is wrong with the database that comes out of a copy."""
    place.parent.mkdir()
    assert restore(connect(str(place)), copy) is None
    wrong = []
    for session, acknowledged in before.items():
        script = Script(str(place), session)
        found = position(script.lists())
        if found is None or found < acknowledged:
            wrong.append(f"{session}: {acknowledged} changes were acknowledged, the copy has {found}")
        wrong += script.problems()
        script.close()
    return wrong


def test_a_copy_stands_alone(tmp_path: Path) -> None:
    script = Script(str(tmp_path / "punchlist.db"))
    script.perform_all(7)
    backup(script.house.store, tmp_path / "copy.db")
    script.close()
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]


@pytest.mark.parametrize("place", [".", "/dev/null"])
def test_what_is_no_file_is_not_copied(tmp_path: Path, place: str) -> None:
    with pytest.raises(StoreError, match="is not a file"):
        backup(connect(str(tmp_path / place)), tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_never_replaces_a_file(tmp_path: Path) -> None:
    script = Script(str(tmp_path / "punchlist.db"))
    script.perform(0)
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="already exists"):
        backup(script.house.store, tmp_path / "diary.txt")
    assert (tmp_path / "diary.txt").read_text() == "mine"
    script.close()


def test_a_copy_that_cannot_be_written_names_the_copy_and_not_the_database(tmp_path: Path) -> None:
    script = Script(str(tmp_path / "punchlist.db"))
    script.perform(0)
    with pytest.raises(StoreError, match=r"copy\.db") as refused:
        backup(script.house.store, tmp_path / "missing" / "copy.db")
    assert "punchlist.db" not in str(refused.value)
    script.close()


def test_a_restore_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(10)
    backup(script.house.store, tmp_path / "copy.db")
    script.close()
    # What a killed process leaves: the newest changes are in the log only.
    with Writer(str(path), first=10) as writer:
        writer.wait_for(15)
        changes = writer.kill()
    kept = restore(connect(str(path)), tmp_path / "copy.db")
    assert kept is not None
    for place, possible in ((path, [10]), (kept, [changes, changes + 1])):
        found = Script(str(place))
        assert position(found.lists()) in possible
        assert found.problems() == []
        found.close()


def test_restores_in_a_row_keep_every_database_there_was(tmp_path: Path) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(3)
    backup(script.house.store, tmp_path / "copy.db")
    script.close()
    kept = [restore(connect(str(path)), tmp_path / "copy.db") for _ in range(3)]
    assert len({place for place in kept if place and place.exists()}) == 3


def test_a_copy_that_is_none_is_not_restored(tmp_path: Path) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(10)
    backup(script.house.store, tmp_path / "good.db")
    script.close()
    good = (tmp_path / "good.db").read_bytes()
    (tmp_path / "torn.db").write_bytes(good[: len(good) // 2])
    (tmp_path / "text.db").write_text("Dear diary,\n" * 1_000)
    (tmp_path / "empty.db").touch()
    (tmp_path / "folder.db").mkdir()
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    with closing(sqlite3.connect(tmp_path / "newer.db")) as connection:
        connection.deserialize(good)
        connection.execute("UPDATE punchlist_schema SET version_num = '9999'")
        connection.commit()
        (tmp_path / "newer.db").write_bytes(connection.serialize())
    for name, statement in (
        ("nameless", "UPDATE punchlist_schema SET version_num = ''"),
        ("bare", "DELETE FROM punchlist_schema"),
    ):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection:
            connection.deserialize(good)
            connection.execute(statement)
            connection.commit()
            (tmp_path / f"{name}.db").write_bytes(connection.serialize())
    for name in ("torn", "text", "empty", "folder", "foreign", "newer", "nameless", "bare", "missing"):
        with pytest.raises(PunchlistError, match=rf"{name}\.db"):
            restore(connect(str(path)), tmp_path / f"{name}.db")
    assert sorted(found.name for found in tmp_path.glob("punchlist.db*")) == ["punchlist.db", "punchlist.db-made"]
    script = Script(str(path))
    assert script.lists() == expected(10)
    script.close()


def test_a_restore_under_a_running_writer_loses_nothing_that_it_acknowledges(tmp_path: Path) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(7)
    backup(script.house.store, tmp_path / "copy.db")
    # Another process, an MCP server say, has the database open and goes on after the restore.
    with contextlib.suppress(StoreError):
        restore(connect(str(path)), tmp_path / "copy.db")
    script.perform(7)
    later = Script(str(path))
    assert later.lists() == expected(8)
    for opened in (script, later):
        opened.close()


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=pytest.mark.soak)], ids=["seconds", "full"])
def test_what_others_write_during_a_restore_is_in_one_database_or_the_other(tmp_path: Path, times: int) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform(0)
    backup(script.house.store, tmp_path / "copy.db")
    # So that setting it aside takes as long as hundreds of changes.
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            f"INSERT INTO conversations VALUES ('ballast', CAST(zeroblob({BALLAST}) AS TEXT), '{{}}', '2026')"
        )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    heavy = tmp_path / "heavy.db"
    backup(script.house.store, heavy)
    script.close()
    found: set[str] = set()
    with _Adding(str(path), people=ADDING) as adding:
        for copy in [tmp_path / "copy.db", heavy] * times:
            adding.wait_for(len(adding.added) + 10)
            kept = restore(connect(str(path)), copy)
            assert kept is not None
            found |= _sessions(kept)
            kept.unlink()
        adding.wait_for(len(adding.added) + 10)
    assert set(adding.added) - found - _sessions(path) == set()


BALLAST = 60_000_000
ADDING = 4


class _Adding:
    """People who add an item after the other, each item to a list of its own."""

    def __init__(self, address: str, people: int) -> None:
        self.added: list[str] = []
        self._address = address
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._add, args=[f"person-{number}"]) for number in range(people)]

    def _add(self, person: str) -> None:
        script = Script(self._address)
        for number in count():
            session = f"{person}-item-{number}"
            script.house.checklists.add(Scope(session, script.scope.actor), "Item", reason="test")
            self.added.append(session)
            if self._enough.is_set():
                break
        script.close()

    def wait_for(self, items: int) -> None:
        eventually(lambda: len(self.added) >= items or not self._all_there(), "items are added")
        assert self._all_there()

    def _all_there(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def __enter__(self) -> _Adding:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()


def _sessions(path: Path) -> set[str]:
    """Whose lists are in a database."""
    with closing(sqlite3.connect(path)) as connection:
        return {session for (session,) in connection.execute("SELECT conversation_id FROM checklists")}


class _SomebodyWaits(sqlite3.Connection):
    """Somebody has been waiting for a lock, and has it first."""

    def __init__(self, lock: sqlite3.Connection, come: Callable[[], None]) -> None:
        self._lock, self._come = lock, come

    def execute(self, sql: str, /, *_: Any) -> sqlite3.Cursor:
        done = self._lock.execute(sql)
        if sql == "COMMIT":
            self._come()
        return done


def test_a_change_made_just_before_the_database_is_replaced_is_in_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(3)
    backup(script.house.store, tmp_path / "copy.db")
    # The moment lasts microseconds, and somebody comes in it once in a hundred restores.
    replace = maintenance._replace
    later = iter((3, 4))

    def come() -> None:
        for change in later:
            script.perform(change)
            break

    def replace_too_late(reader: sqlite3.Connection, writer: sqlite3.Connection, lock: sqlite3.Connection) -> None:
        replace(reader, writer, _SomebodyWaits(lock, come))

    monkeypatch.setattr(maintenance, "_replace", replace_too_late)
    kept = restore(connect(str(path)), tmp_path / "copy.db")
    assert kept == tmp_path / "punchlist.db.before-restore-1"
    assert script.lists() == expected(3)
    old = Script(str(kept))
    assert old.lists() == expected(5)
    for opened in (script, old):
        opened.close()


def test_restores_at_the_same_moment_keep_every_database_there_was(tmp_path: Path) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(3)
    backup(script.house.store, tmp_path / "copy.db")
    script.close()
    kept = together(*[partial(restore, connect(str(path)), tmp_path / "copy.db") for _ in range(4)])
    assert len(set(kept)) == 4
    for place in (path, *filter(None, kept)):
        found = Script(str(place))
        assert found.lists() == expected(3)
        found.close()


def test_a_database_that_others_hold_on_to_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(3)
    backup(script.house.store, tmp_path / "copy.db")
    monkeypatch.setattr(maintenance, "BUSY_SECONDS", 0.1)
    with script.house.store.write(), pytest.raises(StoreBusy, match=r"punchlist\.db"):
        restore(connect(str(path)), tmp_path / "copy.db")
    assert list(tmp_path.glob("*before-restore*")) == []
    script.perform(3)
    assert script.lists() == expected(4)
    script.close()


def test_a_database_that_others_write_to_all_the_time_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(3)
    backup(script.house.store, tmp_path / "copy.db")
    replace, changes = maintenance._replace, count(3)

    def replace_too_late(reader: sqlite3.Connection, writer: sqlite3.Connection, lock: sqlite3.Connection) -> None:
        replace(reader, writer, _SomebodyWaits(lock, lambda: script.perform(next(changes))))

    monkeypatch.setattr(maintenance, "_replace", replace_too_late)
    with pytest.raises(StoreBusy, match=r"Other processes write to .*punchlist\.db continuously"):
        restore(connect(str(path)), tmp_path / "copy.db")
    assert _left_beside(path) == []
    assert script.lists() == expected(next(changes))
    script.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), sqlite3.OperationalError("disk I/O error")])
def test_a_restore_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(3)
    backup(script.house.store, tmp_path / "copy.db")
    script.perform(3)
    look, looks = maintenance._changes, count(1)

    def look_and_fail(connection: sqlite3.Connection) -> object:
        # Before, under the lock; then after the first page.
        if next(looks) == 3:
            raise error
        return look(connection)

    monkeypatch.setattr(maintenance, "_changes", look_and_fail)
    with pytest.raises((KeyboardInterrupt, StoreError)):
        restore(connect(str(path)), tmp_path / "copy.db")
    assert next(looks) > 3
    assert _left_beside(path) == []
    assert script.lists() == expected(4)
    script.close()


def test_what_was_there_is_kept_even_if_somebody_presses_ctrl_c_just_when_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(3)
    backup(script.house.store, tmp_path / "copy.db")
    script.perform(3)
    replace = maintenance._replace

    def replace_and_stop(*connections: sqlite3.Connection) -> None:
        replace(*connections)
        raise KeyboardInterrupt

    monkeypatch.setattr(maintenance, "_replace", replace_and_stop)
    with pytest.raises(KeyboardInterrupt):
        restore(connect(str(path)), tmp_path / "copy.db")
    assert script.lists() == expected(3)
    [kept] = _left_beside(path)
    old = Script(str(kept))
    assert old.lists() == expected(4)
    for opened in (script, old):
        opened.close()


def _left_beside(path: Path) -> list[Path]:
    """What a restore has made beside a database."""
    return [one for one in path.parent.glob(f"{path.name}.*") if not one.name.endswith(("-wal", "-shm", "-made"))]


@pytest.mark.parametrize("there", [True, False], ids=["over a database", "where there is none"])
def test_a_copy_of_an_older_program_is_brought_along_before_anybody_sees_it(
    tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, older = tmp_path / "punchlist.db", tmp_path / "older.db"
    open_store(str(older)).close()
    become_newer(monkeypatch, tmp_path / "migrations")
    script = Script(str(path))
    script.perform_all(3)
    if not there:
        script.close()
        path.unlink()
    assert (restore(connect(str(path)), older) is not None) == there
    assert _version(path) == NEXT
    assert _version(older) == SCHEMA_VERSION
    # Another process, an MCP server say, has had the database open all the time.
    script.perform_all(3)
    assert script.lists() == expected(3)
    assert script.problems() == []
    script.close()


def _version(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        [[version]] = connection.execute(READ_VERSION)
    return str(version)


def test_what_is_put_where_a_damaged_database_was_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "punchlist.db"
    _damaged(path, tmp_path / "copy.db")
    damaged, move = path.read_bytes(), maintenance._move_aside

    def move_slowly(file: Path) -> Path | None:
        kept = move(file)
        path.write_text("mine")
        return kept

    monkeypatch.setattr(maintenance, "_move_aside", move_slowly)
    with pytest.raises(StoreBusy, match=r"before-restore-1"):
        restore(connect(str(path)), tmp_path / "copy.db")
    assert path.read_text() == "mine"
    [kept] = _left_beside(path)
    assert kept.read_bytes() == damaged


def test_who_comes_while_a_damaged_database_is_moved_aside_waits_for_the_restored_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "punchlist.db"
    _damaged(path, tmp_path / "copy.db")
    move, asked = maintenance._move_aside, threading.Event()

    def come() -> None:
        script = Script(str(path))
        script.perform(3)
        script.close()

    def lock_and_tell(*arguments: Any) -> None:
        asked.set()
        flock(*arguments)

    flock, newcomer = fcntl.flock, threading.Thread(target=come)

    def move_slowly(file: Path) -> Path | None:
        kept = move(file)
        monkeypatch.setattr(fcntl, "flock", lock_and_tell)
        newcomer.start()
        assert asked.wait(PATIENCE)
        return kept

    monkeypatch.setattr(maintenance, "_move_aside", move_slowly)
    restore(connect(str(path)), tmp_path / "copy.db")
    newcomer.join(PATIENCE)
    found = Script(str(path))
    assert found.lists() == expected(4)
    found.close()


def _damaged(path: Path, copy: Path) -> None:
    """A database that nobody can read, and a copy of what it was."""
    script = Script(str(path))
    script.perform_all(3)
    backup(script.house.store, copy)
    script.close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * 4_000 + content[4_100:])


@pytest.mark.parametrize("kills", [5, pytest.param(300, marks=pytest.mark.soak)], ids=["seconds", "full"])
def test_a_restore_that_is_killed_leaves_the_old_database_or_the_new_one(
    project: Path, environment: dict[str, str], kills: int
) -> None:
    path = project / ".punchlist" / "punchlist.db"
    script = Script(str(path))
    script.perform_all(100)
    backup(script.house.store, project / "earlier.db")
    for change in range(100, 200):
        script.perform(change)
    backup(script.house.store, project / "later.db")
    script.close()
    moments = random.Random(6)
    outcomes = set()
    for _ in range(kills):
        for kept in path.parent.glob("*before-restore*"):
            kept.unlink()
        with Program(project, environment, "db", "restore", "--yes", "earlier.db") as program:
            eventually(path.with_name("punchlist.db.before-restore-1").exists, "the restore begins")
            spin(moments.uniform(0, 0.02))
            program.process.kill()
            program.end()
        found = Script(str(path))
        outcomes.add(position(found.lists()))
        assert found.problems() == []
        found.close()
        restore(connect(str(path)), project / "later.db")
    assert outcomes <= {100, 200}


def test_a_server_is_copied_with_its_own_tools(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="pg_dump"):
        backup(connect(postgres_url), tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="pg_restore"):
        restore(connect(postgres_url), tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []
