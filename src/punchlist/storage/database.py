"""The interface of a database driver, which `sqlite.py` and `postgres.py` implement."""

from __future__ import annotations

from typing import Any, Protocol

from punchlist.storage.statements import Kind


class Database(Protocol):
    """The differences between SQLite and PostgreSQL."""

    kind: Kind
    name: str
    """For messages; never contains a password."""
    one_writer: bool
    """A write transaction locks the whole database, so that rows need no locks."""
    list_tables: str
    """SQL that selects the names of all visible tables."""

    @property
    def driver_error(self) -> type[Exception]: ...

    def connect(self) -> Any:
        """A configured driver connection without an open transaction."""

    def is_missing(self) -> bool:
        """Whether the database file does not exist."""

    def is_same_file(self, connection: Any, *, with_log: bool = False) -> bool:
        """Whether the connection's file is still the one at the database's path. A file can be removed or replaced
        while it is open, and then everything written to it is lost. `with_log` checks the WAL file as well."""

    def is_reusable(self, connection: Any) -> bool:
        """Whether a connection can be kept for the next transaction."""

    def read_only_reason(self) -> str | None:
        """Why the database was opened for reading only; None if it can be written."""

    def begin_write(self, cursor: Any) -> None: ...

    def begin_read(self, cursor: Any) -> None: ...

    def lift_time_limits(self, cursor: Any) -> None:
        """Let the transaction that has begun take as long as it needs."""

    def commit(self, cursor: Any) -> None: ...

    def is_disconnect(self, error: Exception) -> bool:
        """Whether the error means a lost connection rather than a wrong statement."""

    def change_counter(self, cursor: Any) -> int:
        """A number that changes when another connection commits."""

    def translate(self, error: Exception) -> Exception:
        """The `PunchlistError` for a driver error; any other error unchanged."""
