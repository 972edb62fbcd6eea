"""Addresses that lead to something else than a database of ours: refused in a sentence, and left alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.script import Script, expected

from punchlist.errors import PunchlistError, StoreError
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import APPLICATION_ID


def _text(path: Path) -> None:
    path.write_text("Dear diary,\n" * 1_000)


def _few_bytes(path: Path) -> None:
    path.write_bytes(b"hi")


def _directory(path: Path) -> None:
    path.mkdir()


def _endless_link(path: Path) -> None:
    path.symlink_to(path)


def _sql(*statements: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    return make


OURS = f"PRAGMA application_id = {APPLICATION_ID}"


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_text, id="a text"),
        pytest.param(_few_bytes, id="a few bytes"),
        pytest.param(_directory, id="a folder"),
        pytest.param(_endless_link, id="a link to itself"),
        pytest.param(_sql("CREATE TABLE songs (title TEXT)"), id="another program's database"),
        pytest.param(
            _sql("PRAGMA application_id = 7", "PRAGMA user_version = 3"), id="another program's empty database"
        ),
        pytest.param(_sql(OURS, "CREATE TABLE turns (id TEXT)"), id="our mark and a foreign table"),
        pytest.param(_sql(OURS, "CREATE TABLE punchlist_schema (version_num)"), id="our mark and no revision"),
    ],
)
def test_what_is_not_our_database_is_refused_and_left_as_it_is(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "punchlist.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=r"punchlist\.db"):
        open_store(str(path))
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_database_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Cannot create the folder"):
        open_store(str(tmp_path / "file" / "folder" / "punchlist.db"))


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    for name in ("x" * 300, "a\0b"):
        with pytest.raises(PunchlistError):
            open_store(str(tmp_path / name))


def test_a_missing_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    script = Script(str(tmp_path / "not" / "there" / "punchlist.db"))
    script.perform(0)
    script.close()
    assert os.stat(tmp_path / "not" / "there").st_mode & 0o777 == 0o700


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    # As `mktemp` makes it. A database that was cut to nothing looks the same: see test_damage.
    path = tmp_path / "punchlist.db"
    path.touch()
    script = Script(str(path))
    script.perform(0)
    assert script.problems() == []
    script.close()
    again = Script(str(path))
    assert again.lists() == expected(1)
    again.close()


def test_a_copy_that_was_put_in_place_gets_its_log_back(tmp_path: Path) -> None:
    file = tmp_path / "punchlist.db"
    open_store(str(file)).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    open_store(str(file)).close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
