"""Copies made while others write, and going back to one (trust test 6)."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
from tests.faults.processes import Program, Writer, eventually, spin
from tests.faults.script import Script, expected, position

from punchlist.errors import InvalidInput, PunchlistError, StoreError
from punchlist.storage.opening import connect
from punchlist.storage.upkeep import backup, restore

SESSIONS = ("one", "two")


@pytest.mark.parametrize("copies", [8, pytest.param(300, marks=pytest.mark.soak)], ids=["seconds", "full"])
def test_every_copy_made_while_others_write_is_whole(tmp_path: Path, copies: int) -> None:
    address = str(tmp_path / "punchlist.db")
    with ExitStack() as stack:
        writers = {session: stack.enter_context(Writer(address, session)) for session in SESSIONS}
        for number in range(copies):
            for writer in writers.values():
                # Both go on in earnest, some twenty changes or more for every copy.
                writer.wait_for(writer.acknowledged + 10)
            before = {session: writer.acknowledged for session, writer in writers.items()}
            copy = tmp_path / f"copy-{number}.db"
            store = connect(address)
            backup(store, copy)
            store.close()
            assert _restored(tmp_path / f"restored-{number}" / "punchlist.db", copy, before) == []


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


def test_a_copy_never_replaces_a_file(tmp_path: Path) -> None:
    script = Script(str(tmp_path / "punchlist.db"))
    script.perform(0)
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="exists already"):
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
    for name in ("torn", "text", "empty", "folder", "foreign", "newer", "missing"):
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
    for number in range(1, kills + 1):
        kept = path.with_name(f"punchlist.db.before-restore-{number}")
        with Program(project, environment, "db", "restore", "--yes", "earlier.db") as program:
            eventually(partial(_begun, kept, program), "the restore begins")
            spin(moments.uniform(0, 0.03))
            program.process.kill()
            program.end()
        found = Script(str(path))
        assert position(found.lists()) in (100, 200)
        assert found.problems() == []
        found.close()
        kept.touch()
        restore(connect(str(path)), project / "later.db")


def _begun(kept: Path, program: Program) -> bool:
    return kept.exists() or program.process.poll() is not None


def test_a_server_is_copied_with_its_own_tools(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="pg_dump"):
        backup(connect(postgres_url), tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="pg_restore"):
        restore(connect(postgres_url), tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []
