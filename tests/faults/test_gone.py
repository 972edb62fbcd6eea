"""A database that is removed or replaced while it is open: whatever is acknowledged is where people look for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.conftest import Cli
from tests.faults.processes import Program
from tests.surfaces.mcp_client import WireClient

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import StoreUnavailable
from punchlist.kernel.actors import Actor, Role
from punchlist.storage.opening import open_store
from punchlist.storage.statements import Statement


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
    _remove(file)
    copy.rename(file)


@pytest.mark.parametrize("gone", [_remove_all, _remove, _replace])
def test_a_server_writes_to_the_database_that_has_the_name(
    project: Path, environment: dict[str, str], punchlist: Cli, gone: Callable[[Path], None]
) -> None:
    def write(content: str) -> None:
        client.call("TodoWrite", todos=[{"content": content, "status": "pending", "activeForm": content}])

    with WireClient(project, environment) as client, Program(project, environment, "todos", "--watch") as watch:
        write("Before")
        watch.wait_for("Before")
        gone(project / ".punchlist" / "punchlist.db")
        write("After")
        assert "After" in punchlist("todos").stdout
        watch.wait_for("After")
    assert punchlist("db", "check").returncode == 0


def test_a_change_of_which_nobody_knows_is_not_said_to_have_failed(postgres_url: str) -> None:
    store = open_store(postgres_url)

    def change() -> None:
        with store.write() as tx, psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", tx.raw("SELECT pg_backend_pid()")[0])

    with pytest.raises(StoreUnavailable, match="it may have been made, or not"):
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
