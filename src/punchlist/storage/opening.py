"""From a database address to a store that is ready to use."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from punchlist.config import PROJECT_FOLDER
from punchlist.errors import ConfigError, StoreDamaged, StoreUnavailable
from punchlist.kernel.clock import Clock, system_clock
from punchlist.kernel.text import excerpt, line_problem
from punchlist.storage import migrate, postgres, sqlite
from punchlist.storage.store import Database, Store

_HEADER: Final = 100
LONGEST_ADDRESS: Final = 4_000


def database_url(address: str) -> URL:
    """What people write (`sqlite:///…`, `postgres://…`, a path) as one kind of URL."""
    if problem := line_problem(address, longest=LONGEST_ADDRESS):
        raise ConfigError(f"The database address {problem}.")
    if "://" not in address:
        if re.match(r"(sqlite|file|postgres|postgresql):", address):
            raise ConfigError(f"The database address {excerpt(address)!r} lacks its slashes. Write sqlite:///PATH.")
        return URL.create("sqlite", database=os.path.expanduser(address))
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise ConfigError(
            "The database address cannot be read. Write sqlite:///PATH or postgresql://USER@HOST/NAME."
        ) from None
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        if url.query:
            raise ConfigError(f"A SQLite address takes no options ({', '.join(url.query)}). Write sqlite:///PATH.")
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
    file = Path(store.engine.url.database or "") if store.engine.dialect.name == "sqlite" else None
    try:
        if file:
            _make_home(file.parent)
            _refuse_cut(file)
        migrate.bring_up_to_date(store.engine)
        if file:
            _remember(file)
    except OSError as error:
        raise StoreUnavailable(f"Cannot use {file} as a database ({error.strerror}).") from error
    except Exception as error:
        store.fail(error)
    return store


def existing_store(address: str) -> Store:
    """A store on a database that must be there already, left at the schema it has."""
    url = database_url(address)
    if url.drivername == "sqlite":
        if not Path(url.database or "").exists():
            raise StoreUnavailable(f"There is no database at {url.database} yet. It is made on first use.")
        _refuse_cut(Path(url.database or ""))
    return connect(address)


def _refuse_cut(file: Path) -> None:
    """SQLite takes an empty file for a new database. Where one was made before, it is what is left of that."""
    if not file.exists():
        # Whoever removed it wants a new one. The mark goes first: an empty file is then a new file.
        _mark(file).unlink(missing_ok=True)
        return
    size = file.stat().st_size
    if size < _HEADER and (size or _mark(file).exists()):
        raise StoreDamaged(
            f"{file} has only {size} bytes left of it. `punchlist db restore BACKUP` goes back to a good copy; "
            f"to begin anew, remove {file} and {_mark(file)}."
        )


def _remember(file: Path) -> None:
    mark = _mark(file)
    if not mark.exists():
        with suppress(OSError):
            mark.write_text(f"{file.name} was made; if it is ever empty, it was cut.\n")


def _mark(file: Path) -> Path:
    return file.with_name(f"{file.name}-made")


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
