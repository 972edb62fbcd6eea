"""From a database address to a store that is ready to use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from punchlist.errors import ConfigError, StoreUnavailable
from punchlist.kernel.clock import Clock, system_clock
from punchlist.storage import migrate, postgres, sqlite
from punchlist.storage.store import Database, Store

PROJECT_FOLDER: Final = ".punchlist"


def database_url(address: str) -> URL:
    """What people write (`sqlite:///…`, `postgres://…`, a path) as one kind of URL."""
    if "://" not in address:
        return URL.create("sqlite", database=address)
    try:
        url = make_url(address)
    except ArgumentError:
        raise ConfigError(
            "The database address cannot be read. Write sqlite:///PATH or postgresql://USER@HOST/NAME."
        ) from None
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        return url.set(drivername="sqlite")
    raise ConfigError(f"Punchlist works on SQLite and PostgreSQL, not on {backend!r}.")


def connect(address: str, *, clock: Clock = system_clock, synchronous: str = "NORMAL") -> Store:
    """A store on the database as it is; `open_store` also brings its schema up to date."""
    url = database_url(address)
    if url.drivername == "sqlite":
        engine = sqlite.open_engine(url, synchronous=synchronous)
        database: Database = sqlite.SQLite(Path(url.database or ""))
    else:
        engine = postgres.open_engine(url)
        database = postgres.PostgreSQL(url.render_as_string(hide_password=True))
    return Store(engine, database, clock)


def open_store(address: str, *, clock: Clock = system_clock, synchronous: str = "NORMAL") -> Store:
    store = connect(address, clock=clock, synchronous=synchronous)
    if store.engine.dialect.name == "sqlite":
        _make_home(Path(store.engine.url.database or "").parent)
    try:
        migrate.bring_up_to_date(store.engine)
    except Exception as error:
        store.fail(error)
    return store


def existing_store(address: str) -> Store:
    """A store on a database that must be there already, left at the schema it has."""
    url = database_url(address)
    if url.drivername == "sqlite" and not Path(url.database or "").exists():
        raise StoreUnavailable(f"There is no database at {url.database} yet. It is made on first use.")
    return connect(address)


def _make_home(folder: Path) -> None:
    """The folder of a SQLite file. One of ours inside a project keeps itself out of version control."""
    if folder.exists():
        return
    try:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        if folder.name == PROJECT_FOLDER:
            (folder / ".gitignore").write_text("*\n")
    except OSError as error:
        raise StoreUnavailable(f"Cannot make the folder {folder} ({error.strerror}).") from error
