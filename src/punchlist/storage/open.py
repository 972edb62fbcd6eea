"""Reads the address of a database and opens it: creates, checks and upgrades it as needed.

An address is `sqlite:///PATH`, `postgresql://…`, or a plain path. libpq parses PostgreSQL URLs, so that they mean the
same as to `psql`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from punchlist.config import DEFAULT_POOL_SIZE, PROJECT_FOLDER
from punchlist.errors import ConfigError, StoreDamaged, StoreUnavailable
from punchlist.extras import require
from punchlist.kernel.clock import Clock, system_clock
from punchlist.kernel.text import line_problem
from punchlist.storage import postgres, sqlite, trusted_files
from punchlist.storage.schema_version import READ_VERSION, SCHEMA_DIGESTS, SCHEMA_VERSION
from punchlist.storage.statements import Kind
from punchlist.storage.store import Store
from punchlist.trust import Trust

_HEADER: Final = 100
_MAX_LISTED: Final = 3
_SQLITE_OBJECTS: Final = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master"
_STATISTICS: Final = {
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
}
"""Tables that ANALYZE creates. Compared by text, since a file can name any object like one of these."""
MAX_ADDRESS_LENGTH: Final = 4_000
_FORM: Final = re.compile(r"(?P<backend>\w+)(\+\w+)?://(?P<rest>.*)", re.DOTALL)
_FORMS: Final = "Write sqlite:///PATH or postgresql://USER@HOST/NAME."
# libpq ends user and password at a slash, wherever the @ is, and takes the rest for a host.
_ONE_AT: Final = re.compile(r"([^/@]*@)?[^@]*")
_NEARLY: Final = re.compile(r"(sqlite|file|postgres|postgresql)(:|//)|(.*\s)?(host|user|password|dbname)\s*=")
_PORTS: Final = re.compile(r"[\d,]*")


# --- addresses ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    kind: Kind
    location: str = field(repr=False)
    """The path of a SQLite file as given; the URL of a PostgreSQL database."""
    display: str
    """For messages: passwords are masked."""

    @property
    def file(self) -> Path | None:
        return Path(self.location) if self.kind == "sqlite" else None


def parse_database_url(text: str) -> DatabaseUrl:
    text = text.strip()
    if problem := line_problem(text, max_length=MAX_ADDRESS_LENGTH):
        raise ConfigError(f"The database address {problem}.")
    if "://" not in text:
        if _NEARLY.match(text):
            raise ConfigError(f"The database address is incomplete. {_FORMS}")
        return _sqlite(text)
    form = _FORM.fullmatch(text)
    if form is None:
        raise _unreadable()
    backend, rest = form["backend"], form["rest"]
    if backend in ("postgresql", "postgres"):
        return _postgresql(rest)
    if backend != "sqlite":
        raise ConfigError(f"Punchlist supports SQLite and PostgreSQL, not {backend!r}.")
    path, _, options = rest.partition("?")
    if options:
        names = ", ".join(option.partition("=")[0] for option in options.split("&"))
        raise ConfigError(f"A SQLite address takes no options ({names}). Write sqlite:///PATH.")
    if path and not path.startswith("/"):
        raise _unreadable()
    return _sqlite(path[1:])


def _sqlite(path: str) -> DatabaseUrl:
    path = os.path.expanduser(path)
    if not path or path == ":memory:":
        raise ConfigError("The database must be a file, since several processes share it. Write sqlite:///PATH.")
    decoded = unquote(path)
    if decoded != path and os.path.exists(decoded) and not os.path.exists(path):
        raise ConfigError(f"The path of a SQLite address is not percent-decoded. Write sqlite:///{decoded}.")
    return DatabaseUrl("sqlite", path, f"sqlite:///{path}")


def _postgresql(rest: str) -> DatabaseUrl:
    require("psycopg", extra="postgres", feature="PostgreSQL support")
    from psycopg import Error
    from psycopg.conninfo import timeout_from_conninfo
    from psycopg.pq import Conninfo

    url = f"postgresql://{rest}"
    try:
        options = [option for option in Conninfo.parse(url.encode()) if option.val is not None]
        said = {option.keyword.decode(): (option.val or b"").decode() for option in options}
        timeout_from_conninfo({**said})
    except (Error, UnicodeError):
        # The error of libpq may quote a password.
        raise _unreadable() from None
    if not _ONE_AT.fullmatch(rest.partition("?")[0]) or not _PORTS.fullmatch(said.get("port", "")):
        raise _unreadable()
    secret = {option.keyword.decode() for option in options if option.dispchar == b"*"}
    return DatabaseUrl("postgresql", url, _masked({name: "***" if name in secret else said[name] for name in said}))


def _masked(said: dict[str, str]) -> str:
    user, password = said.pop("user", ""), said.pop("password", "")
    # The folder of a Unix socket cannot be written as a host.
    host = "" if said.get("host", "").startswith("/") else said.pop("host", "")
    ports, name = said.pop("port", "").split(","), said.pop("dbname", "")
    whose = f"{user}{':' if password else ''}{password}@" if user or password else ""
    hosts = [f"[{one}]" if ":" in one else one for one in host.split(",")]
    ports += [ports[-1]] * (len(hosts) - len(ports))
    where = ",".join(f"{one}:{port}" if port else one for one, port in zip(hosts, ports, strict=False))
    options = "&".join(f"{option}={value}" for option, value in said.items())
    return f"postgresql://{whose}{where}/{name}{'?' if options else ''}{options}"


def _unreadable() -> ConfigError:
    return ConfigError(
        f"The database address cannot be parsed. {_FORMS} In names, passwords and options write %40 for @, %2F for /, "
        "%25 for %."
    )


# --- opening -----------------------------------------------------------------------------------------------


def connect(
    address: str, *, clock: Clock = system_clock, synchronous: str = "NORMAL", pool_size: int = DEFAULT_POOL_SIZE
) -> Store:
    """A store on the database as it is, without creating or upgrading it."""
    where = parse_database_url(address)
    if where.file is not None:
        return Store(sqlite.SQLite(where.file, synchronous=synchronous), clock, pool_size=pool_size)
    return Store(postgres.PostgreSQL(where.location, where.display), clock, pool_size=pool_size)


def open_store(
    address: str,
    *,
    clock: Clock = system_clock,
    synchronous: str = "NORMAL",
    pool_size: int = DEFAULT_POOL_SIZE,
    trust: Trust | None = None,
) -> Store:
    """`trust`: open a SQLite file only if its user created or adopted it, now and whenever it is replaced."""
    store = connect(address, clock=clock, synchronous=synchronous, pool_size=pool_size)
    file = parse_database_url(address).file
    if trust is not None:
        store.sign_with(trust.key)
    store.prepare = partial(_prepare, file=file.absolute() if file else None, trust=trust)
    store.prepare(store)
    return store


def _prepare(store: Store, *, file: Path | None, trust: Trust | None) -> None:
    try:
        if file:
            if trust is not None:
                trusted_files.check_adopted(file, trust)
            create_folder(file.parent)
            _create_file(store, file, trust or Trust.of_user(os.environ))
            _refuse_truncated(file)
        ensure_schema(store)
        if file:
            _check_schema(store)
            _write_marker(file)
            _enable_log(store)
    except OSError as error:
        raise StoreUnavailable(f"Cannot use {file} as a database ({error.strerror}).") from error
    except Exception as error:
        store.raise_translated(error)


def _create_file(store: Store, file: Path, trust: Trust) -> None:
    """Create a file if there is none, and remove the marker and WAL files of a deleted one. An empty file is used.

    The marker goes first, so that the file counts as new.
    """
    database = store.database
    if not isinstance(database, sqlite.SQLite) or not (database.is_missing() or _is_blank(file)):
        return
    real = Path(os.path.realpath(file))
    with sqlite.lock_folder(real.parent):
        if database.is_missing():
            _marker(file).unlink(missing_ok=True)
            for suffix in (*sqlite.SUFFIXES, "-journal"):
                Path(f"{real}{suffix}").unlink(missing_ok=True)
            trusted_files.create_file(real, trust)
        elif _is_blank(file):
            trusted_files.create_file(real, trust)


def _is_blank(file: Path) -> bool:
    """Whether the file is empty and was never a database."""
    try:
        return file.stat().st_size == 0 and file.is_file() and not _marker(file).exists()
    except OSError:
        return False


def ensure_schema(store: Store) -> None:
    """Create or upgrade the schema. The usual case, a current database, costs one query and no further import."""
    if read_schema_version(store) != SCHEMA_VERSION:
        from punchlist.storage.migrate import migrate

        migrate(store)


def _check_schema(store: Store) -> None:
    """Refuse a file whose schema was changed: a trigger could approve a call. The usual case, a schema as it was
    created, costs one query and no further import."""
    connection = store.connections.acquire()
    try:
        if digest_of(sqlite_objects(connection)) == SCHEMA_DIGESTS["sqlite"]:
            return
        from punchlist.storage.schema_objects import schema_differences

        problems = schema_differences(connection, "sqlite")
    finally:
        store.connections.release(connection)
    if problems:
        listed = "; ".join(problem.removeprefix("schema: ") for problem in problems[:_MAX_LISTED])
        raise StoreDamaged(
            f"The schema of {store.database.name} was changed by another program ({listed}). Nothing of it is used. "
            "Run `punchlist trust` to remove what was added, or `punchlist db restore BACKUP` to restore a backup."
        )


def sqlite_objects(connection: Any) -> list[tuple[str, ...]]:
    """Type, name, table and definition of everything in a SQLite file."""
    rows = connection.execute(_SQLITE_OBJECTS).fetchall()
    if not all(isinstance(value, str) for row in rows for value in row):
        raise StoreDamaged.not_as_written("The schema")
    return [row for row in rows if row not in _STATISTICS]


def digest_of(objects: Iterable[tuple[str, ...]]) -> str:
    return sha256(repr(sorted(map(tuple, objects))).encode()).hexdigest()


def open_existing(address: str) -> Store:
    """A store on an existing database, without upgrading it."""
    file = parse_database_url(address).file
    try:
        if file is not None:
            if not file.exists():
                raise StoreUnavailable(f"There is no database at {file} yet. The first command that writes creates it.")
            if not file.is_file():
                raise StoreUnavailable(f"{file} is not a file.")
            _refuse_truncated(file)
    except OSError as error:
        raise StoreUnavailable(f"Cannot use {file} as a database ({error.strerror}).") from error
    return connect(address)


def _refuse_truncated(file: Path) -> None:
    """SQLite treats an empty file as a new database. If the marker exists, the file was truncated."""
    if not file.exists():
        return
    size = file.stat().st_size
    if size < _HEADER and (size or _marker(file).exists()):
        raise StoreDamaged(
            f"{file} was truncated to {size} bytes. Run `punchlist db restore BACKUP` to restore a backup; "
            f"to start with an empty database, remove {file} and {_marker(file)}."
        )


def _write_marker(file: Path) -> None:
    marker = _marker(file)
    if not marker.exists():
        with suppress(OSError):
            marker.write_text(f"{file.name} was created. If it is empty now, it was truncated.\n")


def _enable_log(store: Store) -> None:
    """Enable the write-ahead log, which a file copied into place does not have.

    Only through SQLite: a process that opens and closes the file itself drops the locks of its own connections (POSIX).
    """
    connection = store.connections.acquire()
    try:
        # Fails while another connection is open; the next start tries again.
        with suppress(store.database.driver_error):
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
    finally:
        store.connections.release(connection)


def _marker(file: Path) -> Path:
    return file.with_name(f"{file.name}-made")


def create_folder(folder: Path) -> None:
    """Create the folder of a SQLite file. A `.punchlist` folder ignores itself in git."""
    if folder.exists():
        return
    try:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        if folder.name == PROJECT_FOLDER:
            (folder / ".gitignore").write_text("*\n")
    except OSError as error:
        raise StoreUnavailable(f"Cannot create the folder {folder} ({error.strerror}).") from error


def read_schema_version(store: Store) -> str | None:
    """The version that a database records; None if it has no readable version table."""
    if store.database.is_missing():
        return None
    try:
        connection = store.database.connect()
    except Exception as error:
        store.raise_translated(error)
    try:
        cursor = connection.cursor()
        cursor.execute(READ_VERSION)
        row = cursor.fetchone()
        return str(row[0]) if row else None
    except store.database.driver_error:
        return None
    finally:
        connection.close()
