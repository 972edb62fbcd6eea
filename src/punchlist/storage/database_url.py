"""Addresses of databases. Apart from what opens them, since the start of the application only asks for the file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from punchlist.errors import ConfigError
from punchlist.extras import require
from punchlist.kernel.text import line_problem

if TYPE_CHECKING:
    from punchlist.storage.statements import Kind

MAX_LENGTH: Final = 4_000
_FORM: Final = re.compile(r"(?P<backend>\w+)(\+\w+)?://(?P<rest>.*)", re.DOTALL)
_FORMS: Final = "Write sqlite:///PATH or postgresql://USER@HOST/NAME."
# libpq ends user and password at a slash, wherever the @ is, and takes the rest for a host.
_ONE_AT: Final = re.compile(r"([^/@]*@)?[^@]*")
_NEARLY: Final = re.compile(r"(sqlite|file|postgres|postgresql)(:|//)|(.*\s)?(host|user|password|dbname)\s*=")
_PORTS: Final = re.compile(r"[\d,]*")


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
    if problem := line_problem(text, max_length=MAX_LENGTH):
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
