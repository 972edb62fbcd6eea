"""A database that is removed or replaced while it is open: whatever is acknowledged is where people look for it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import Cli
from tests.faults.processes import Program
from tests.faults.processes import punchlist as shell
from tests.faults.tools import Agent
from tests.surfaces.mcp_client import WireClient
from tests.trusted import own

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import StoreUnavailable
from punchlist.kernel.events import Actor, Role
from punchlist.missions.metrics.collectors import CollectorError, collect
from punchlist.missions.model import Metric
from punchlist.storage import open as storage_open
from punchlist.storage import sqlite
from punchlist.storage.open import open_store
from punchlist.storage.sqlite import SQLite
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store
from punchlist.trust import Trust


def _remove_all(file: Path) -> None:
    """As `git clean -fdx` does."""
    shutil.rmtree(file.parent)


def _remove(file: Path) -> None:
    for part in file.parent.glob(f"{file.name}*"):
        if not part.name.endswith("-made"):
            part.unlink()


def _replace(file: Path) -> None:
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    _own(copy, file)
    _remove(file)
    copy.rename(file)


def _remove_file(file: Path) -> None:
    """Without what lies beside it."""
    file.unlink()


def _put_over(file: Path) -> None:
    """As `mv copy punchlist.db` does."""
    copy = _copy(file)
    _own(copy, file)
    copy.replace(file)


def _own(copy: Path, file: Path) -> None:
    own(copy, Path(os.environ["HOME"]), name=file)


def _copy(file: Path) -> Path:
    copy = file.with_name("copy.db")
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


GONE = pytest.mark.parametrize("gone", [_remove_all, _remove, _replace, _remove_file, _put_over])


@GONE
def test_a_server_writes_to_the_database_that_has_the_name(
    project: Path, environment: dict[str, str], punchlist: Cli, gone: Callable[[Path], None]
) -> None:
    def write(content: str) -> None:
        client.call("TodoWrite", todos=[_item(content)])

    with WireClient(project, environment) as client, Program(project, environment, "todos", "--watch") as watch:
        write("Before")
        watch.wait_for("Before")
        gone(project / ".punchlist" / "punchlist.db")
        write("After")
        assert "After" in punchlist("todos").stdout
        watch.wait_for("After")
    assert punchlist("db", "check").returncode == 0


def _item(content: str) -> dict[str, str]:
    return {"content": content, "status": "pending", "activeForm": content}


def test_a_server_refuses_a_file_that_was_put_over_its_database_until_it_is_adopted(
    project: Path, environment: dict[str, str], punchlist: Cli
) -> None:
    file = project / ".punchlist" / "punchlist.db"
    with WireClient(project, environment) as client, Program(project, environment, "todos", "--watch") as watch:
        client.call("TodoWrite", todos=[_item("Before")])
        watch.wait_for("Before")
        _copy(file).replace(file)
        refused = client.call("TodoWrite", todos=[_item("Refused")])
        assert refused["isError"]
        assert "`punchlist trust`" in refused["content"][0]["text"]
        ended = watch.end()
        assert (ended.code, b"`punchlist trust`" in ended.err) == (1, True)
        assert punchlist("trust", "--yes").returncode == 0
        assert "Before" in punchlist("todos").stdout
        client.call("TodoWrite", todos=[_item("After")])
        assert "After" in punchlist("todos").stdout
    assert punchlist("db", "check").returncode == 0


class _Someone:
    """Has a list in a database of their own process."""

    def __init__(self, file: Path, trust: Trust | None = None) -> None:
        self.store = open_store(str(file), trust=trust)
        self._checklists = Checklists(self.store, Conversations(self.store))

    def add(self, item: str, session: str = "default") -> None:
        self._checklists.add(Scope(session, Actor(Role.PERSON, "ann")), item, reason="test")

    def items(self) -> list[str]:
        return [item.content for item in self._checklists.get("default").items]

    def close(self) -> None:
        self.store.close()


def _items(file: Path) -> list[str]:
    """What somebody finds who comes now."""
    someone = _Someone(file)
    found = someone.items()
    someone.close()
    return found


@GONE
def test_who_had_to_wait_writes_to_the_database_that_has_the_name_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: Callable[[Path], None]
) -> None:
    file = tmp_path / "folder" / "punchlist.db"
    someone, begin = _Someone(file), SQLite.begin_write

    def begin_late(database: SQLite, cursor: sqlite3.Cursor) -> None:
        begin(database, cursor)
        monkeypatch.undo()
        gone(file)

    monkeypatch.setattr(SQLite, "begin_write", begin_late)
    someone.add("After")
    assert _items(file) == ["After"]
    someone.close()


LATER = 200
"""Enough for a log that is longer than the copy."""


@pytest.mark.parametrize("others", [0, 2])
def test_nothing_of_a_database_comes_back_in_the_one_that_takes_its_name(
    project: Path, environment: dict[str, str], home: Path, punchlist: Cli, others: int
) -> None:
    file = project / ".punchlist" / "punchlist.db"
    someone = _Someone(file, Trust.of_user({"HOME": str(home)}))
    someone.add("Kept")
    copy = _copy(file)
    with ExitStack() as stack:
        for _ in range(others):
            watch = stack.enter_context(Program(project, environment, "todos", "--watch"))
            watch.wait_for("Kept")
        for number in range(LATER):
            someone.add("Later", f"session-{number}")
        someone.add("Later")
        _own(copy, file)
        copy.replace(file)
        someone.add("After")
        assert _items(file) == ["Kept", "After"]
    assert punchlist("db", "check").returncode == 0
    someone.close()
    assert _items(file) == ["Kept", "After"]


def test_nothing_comes_back_while_another_thread_is_still_at_the_old_database(tmp_path: Path) -> None:
    file = tmp_path / "punchlist.db"
    someone = _Someone(file)
    copy = _copy(file)
    someone.add("Later")
    with someone.store.read():
        copy.replace(file)
        someone.add("After")
        assert _items(file) == ["After"]
    someone.close()
    assert _items(file) == ["After"]


def test_nothing_is_written_to_a_log_that_was_removed(tmp_path: Path, environment: dict[str, str]) -> None:
    file = tmp_path / "punchlist.db"
    someone = _Someone(file)
    someone.add("Before")
    (tmp_path / "punchlist.db-wal").unlink()
    someone.add("After")
    shown = shell(tmp_path, {**environment, "PUNCHLIST_DATABASE_URL": str(file)}, "todos").out.decode()
    assert "Before" in shown
    assert "After" in shown
    someone.close()


def test_a_log_that_loses_its_name_while_it_is_opened_is_not_taken_for_the_one_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    someone = _Someone(tmp_path / "punchlist.db")
    someone.close()
    database, log = someone.store.database, tmp_path / "punchlist.db-wal"

    find_wal_files = sqlite.find_wal_files

    def look_late(file: str) -> sqlite.WalFiles | None:
        log.rename(tmp_path / "nameless")
        log.touch()
        return find_wal_files(file)

    monkeypatch.setattr(sqlite, "find_wal_files", look_late)
    with closing(database.connect()) as connection:
        assert not database.is_same_file(connection)


def test_what_was_written_is_in_the_database_wherever_it_is_moved(tmp_path: Path) -> None:
    file = tmp_path / "punchlist.db"
    someone = _Someone(file)
    someone.add("Before")
    file.rename(tmp_path / "aside.db")
    someone.add("After")
    assert _items(tmp_path / "aside.db") == ["Before"]
    assert _items(file) == ["After"]
    someone.close()


def test_a_database_keeps_its_log_when_only_a_link_to_it_is_changed(tmp_path: Path) -> None:
    one, other, link = tmp_path / "one.db", tmp_path / "other.db", tmp_path / "link.db"
    link.symlink_to(one)
    someone, ben = _Someone(link), _Someone(one)
    someone.add("Before")
    link.unlink()
    link.symlink_to(other)
    someone.add("After")
    assert (tmp_path / "one.db-wal").exists()
    ben.add("Of the other")
    assert _items(one) == ["Before", "Of the other"]
    assert _items(other) == ["After"]
    for opened in (someone, ben):
        opened.close()


def test_only_the_log_of_the_file_that_is_gone_is_taken_away(tmp_path: Path) -> None:
    """Two who have both not looked yet: the second finds the log of the first, which is a new one."""
    file = tmp_path / "punchlist.db"
    first, second = _Someone(file), _Someone(file)
    for someone in (first, second):
        someone.add("Before")
    _put_over(file)
    first.add("After")
    log = (tmp_path / "punchlist.db-wal").stat().st_ino
    second.add("After that")
    assert (tmp_path / "punchlist.db-wal").stat().st_ino == log
    assert _items(file) == ["Before", "Before", "After", "After that"]
    for someone in (first, second):
        someone.close()


def test_a_database_that_is_never_there_for_long_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "folder" / "punchlist.db"
    someone, renew = _Someone(file), storage_open._prepare

    def renew_in_vain(store: Store) -> None:
        renew(store, file=file, trust=None)
        store.connections.release(store.connections.acquire())
        _remove_all(file)

    _remove_all(file)
    someone.store.prepare = renew_in_vain
    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        someone.add("After")
    monkeypatch.setattr(someone.store, "prepare", lambda store: renew(store, file=file, trust=None))
    someone.add("At last")
    assert _items(file) == ["At last"]
    someone.close()


@GONE
def test_a_connection_that_another_thread_gives_back_is_looked_at(tmp_path: Path, gone: Callable[[Path], None]) -> None:
    file = tmp_path / "folder" / "punchlist.db"
    someone = _Someone(file)
    connections, renew = someone.store.connections, someone.store.prepare
    given_back = [connections.acquire()]

    def renew_slowly(store: Store) -> None:
        renew(store)
        while given_back:
            connections.release(given_back.pop())

    someone.store.prepare = renew_slowly
    connections.release(connections.acquire())
    gone(file)
    someone.add("After")
    assert _items(file) == ["After"]
    someone.close()


@pytest.mark.parametrize("then", [Path.unlink, lambda file: (file.unlink(), file.touch())], ids=["gone", "another"])
def test_a_file_that_is_not_there_for_as_long_as_it_is_opened_is_not_the_one_that_has_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: Callable[[Path], None]
) -> None:
    database, connect = SQLite(tmp_path / "punchlist.db"), sqlite3.connect
    database.path.touch()

    def connect_slowly(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        # So that no number of a file is given twice.
        database.path.with_name("kept").hardlink_to(database.path)
        then(database.path)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_slowly)
    with closing(database.connect()) as connection:
        assert not database.is_same_file(connection)


def test_a_database_that_is_gone_has_changed_for_those_who_keep_what_they_read(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "punchlist.db"
    someone = _Someone(file)
    someone.close()
    before = someone.store.external_change_marker()
    someone.close()
    _remove_all(file)
    looks = [someone.store.external_change_marker() for _ in range(2)]
    assert before not in looks
    assert looks[0] != looks[1]
    someone.add("After")
    assert someone.items() == ["After"]
    someone.close()


@pytest.mark.parametrize("remove", [_remove_all, _remove])
def test_closing_does_not_create_a_removed_database_again(
    tmp_path: Path, home: Path, remove: Callable[[Path], None]
) -> None:
    file = tmp_path / "store" / "punchlist.db"
    store = open_store(str(file), trust=Trust.of_user({"HOME": str(home)}))
    for text in ("One", "Two"):
        Checklists(store, Conversations(store)).add(Scope("s", Actor(Role.PERSON, "ann")), text, reason="test")
    remove(file)
    store.close()
    assert not file.exists()


def test_a_change_of_which_nobody_knows_is_not_said_to_have_failed(postgres_url: str) -> None:
    store = open_store(postgres_url)

    def change() -> None:
        with store.write() as tx, psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", tx.raw("SELECT pg_backend_pid()")[0])

    with pytest.raises(StoreUnavailable, match="may or may not have been made"):
        change()
    with store.read() as tx:
        assert tx.one(Statement("SELECT 1")) == (1,)
    store.close()


def test_a_server_with_an_encoding_of_its_own_keeps_every_character(postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS of_ascii")
        connection.execute(
            "CREATE DATABASE of_ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    store = open_store(postgres_server.replace("/postgres?", "/of_ascii?"))
    checklists = Checklists(store, Conversations(store))
    checklists.add(Scope("s", Actor(Role.PERSON, "ann")), "Größe – 大", reason="test")
    assert checklists.get("s").items[0].content == "Größe – 大"
    store.close()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE of_ascii WITH (FORCE)")


def test_opening_a_database_again_does_not_let_go_of_what_this_process_holds(project: Path, punchlist: Cli) -> None:
    """Whoever closes a database last removes its log: nobody may think so while another still writes to it."""
    database = str(project / ".punchlist" / "punchlist.db")
    store = open_store(database)
    open_store(database).close()
    assert punchlist("todos", "add", "Of another process").returncode == 0
    Checklists(store, Conversations(store)).add(Scope("default", Actor(Role.PERSON, "ann")), "Of ours", reason="test")
    shown = punchlist("todos").stdout
    assert "Of another process" in shown
    assert "Of ours" in shown
    store.close()


@pytest.mark.parametrize(
    "name", ["punchlist.db", "punchlist.db-wal", "punchlist.db-shm", "punchlist-engine.db", "hard.db", "link.db"]
)
def test_no_tool_and_no_collector_opens_a_database_that_is_in_use(project: Path, punchlist: Cli, name: str) -> None:
    """To open it would be enough: whoever closes it again lets go of all that this process holds."""
    folder = project / ".punchlist"
    store = open_store(str(folder / "punchlist.db"))
    checklists, ann = Checklists(store, Conversations(store)), Scope("default", Actor(Role.PERSON, "ann"))
    checklists.add(ann, "Before", reason="test")
    (folder / "hard.db").hardlink_to(folder / "punchlist.db")
    (folder / "link.db").symlink_to(folder / "punchlist.db")
    agent, path = Agent(project), f".punchlist/{name}"
    with closing(sqlite3.connect(folder / "punchlist-engine.db")) as engine:
        engine.execute("CREATE TABLE steps (name)")
        for tool, arguments in (
            ("read_file", {}),
            ("read_file", {"first_line": 2}),
            ("write_file", {"content": "mine"}),
            ("edit_file", {"old": "SQLite", "new": "SQLittle"}),
        ):
            assert "list_todo" in agent.fails(tool, path=path, **arguments).message
        with pytest.raises(CollectorError, match="in use"):
            collect(_of_file(path), mission_slug="m", workspace=project, trusted=False, environment={})
    assert punchlist("todos", "add", "Of another process").returncode == 0
    checklists.add(ann, "After", reason="test")
    shown = punchlist("todos").stdout
    assert "Of another process" in shown
    assert "After" in shown
    store.close()


def _of_file(path: str) -> Metric:
    how = json.dumps({"type": "file", "path": path})
    return Metric(
        *("m", "mission", "pillar", "size", "Size", "B", 60.0, None, "down", how),
        *(24.0, 0, "active", None, None, "2026-02-21T09:00:00.000000Z"),
    )
