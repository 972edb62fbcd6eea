"""Where a database is: what people write (`sqlite:///…`, `postgres://…`, a path), read once."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt, line_problem
from punchlist.storage.statements import Kind

LONGEST: Final = 4_000
_FORM: Final = re.compile(r"(?P<backend>\w+)(\+\w+)?://(?P<rest>.*)", re.DOTALL)
_PASSWORD: Final = re.compile(r"(?<=://)([^:/@?]*):[^@]*@|((?<=[?&])password=)[^&]*")


class Address(NamedTuple):
    kind: Kind
    place: str
    """The path of a SQLite file; the URL of a PostgreSQL database as its own library reads it."""

    @property
    def file(self) -> Path | None:
        return Path(self.place) if self.kind == "sqlite" else None

    def shown(self) -> str:
        """For people: without a password."""
        if self.kind == "sqlite":
            return f"sqlite:///{self.place}"
        return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[2] is None else f"{found[2]}***", self.place)


def read_address(text: str) -> Address:
    if problem := line_problem(text, longest=LONGEST):
        raise ConfigError(f"The database address {problem}.")
    if "://" not in text:
        if re.match(r"(sqlite|file|postgres|postgresql):", text):
            raise ConfigError(f"The database address {excerpt(text)!r} lacks its slashes. Write sqlite:///PATH.")
        return _sqlite(os.path.expanduser(text))
    form = _FORM.fullmatch(text)
    if form is None:
        raise _unreadable()
    backend, rest = form["backend"], form["rest"]
    if backend in ("postgresql", "postgres"):
        return _postgresql(f"postgresql://{rest}")
    if backend != "sqlite":
        raise ConfigError(f"Punchlist works on SQLite and PostgreSQL, not on {backend!r}.")
    path, _, options = rest.partition("?")
    if options:
        raise ConfigError(f"A SQLite address takes no options ({excerpt(options)}). Write sqlite:///PATH.")
    if path and not path.startswith("/"):
        raise _unreadable()
    return _sqlite(path[1:])


def _sqlite(path: str) -> Address:
    if not path or path == ":memory:":
        raise ConfigError("The database must be a file: several processes share it. Give sqlite:///PATH.")
    return Address("sqlite", path)


def _postgresql(url: str) -> Address:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(url)
    except ProgrammingError:
        raise _unreadable() from None
    return Address("postgresql", url)


def _unreadable() -> ConfigError:
    return ConfigError("The database address cannot be read. Write sqlite:///PATH or postgresql://USER@HOST/NAME.")
