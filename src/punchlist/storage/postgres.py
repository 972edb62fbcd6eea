"""PostgreSQL: row locks, snapshot reads, limits of time, translated errors.

A process can freeze inside a transaction, or its machine can disappear. The server ends such a transaction after
`idle_in_transaction_session_timeout`, so that others wait no longer than that for its locks; `lock_timeout` and
`statement_timeout` bound every other wait. A limit that the address, the role or the server sets is kept.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from punchlist.errors import Conflict, InvalidInput, StoreBusy, StoreDamaged, StoreUnavailable
from punchlist.storage.statements import Kind

LIMITS: Final = {"statement_timeout": "60s", "lock_timeout": "30s", "idle_in_transaction_session_timeout": "20s"}
"""The idle limit is below the lock limit: who waits for a frozen process gets its lock instead of an error."""
_SET_LIMITS: Final = " UNION ALL ".join(
    f"SELECT set_config('{name}', '{limit}', false) WHERE current_setting('{name}') = '0'"
    for name, limit in LIMITS.items()
)
# A process that freezes while it maintains the database is still noticed.
_LIFT_LIMITS: Final = (
    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; "
    "SET LOCAL idle_in_transaction_session_timeout = '10min'"
)
_BUSY: Final = {
    "40P01": "was busy",
    "55P03": "is busy: another process has kept a lock for too long",
    "57014": "stopped a statement that took too long",
    "25P03": "ended a transaction in which this process did nothing for too long",
}
"""By SQLSTATE: deadlock, `lock_timeout`, `statement_timeout`, `idle_in_transaction_session_timeout`."""
CONNECTION: Final = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Parameters of libpq, with which a server that has disappeared is noticed. Seconds; the last one milliseconds."""


class PostgreSQL:
    """The `Database` of a PostgreSQL server."""

    kind: Kind = "postgresql"
    one_writer = False
    list_tables = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)"

    def __init__(self, url: str, name: str) -> None:
        """`name` is the URL for messages, without its password."""
        self.url = url
        self.name = name

    @property
    def driver_error(self) -> type[Exception]:
        import psycopg

        return psycopg.Error

    def connect(self) -> Any:
        import psycopg

        connection = psycopg.connect(self.url, autocommit=True, client_encoding="utf8", **self.parameters)
        try:
            connection.execute(_SET_LIMITS)
        except BaseException:
            connection.close()
            raise
        return connection

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Those of `CONNECTION` that neither the address nor the environment (`PGCONNECT_TIMEOUT`) sets."""
        from psycopg.pq import Conninfo

        parsed = (*Conninfo.get_defaults(), *Conninfo.parse(self.url.encode()))
        given = {option.keyword.decode() for option in parsed if option.val is not None}
        return {name: value for name, value in CONNECTION.items() if name not in given}

    def is_missing(self) -> bool:
        return False

    def is_same_file(self, connection: Any, *, with_log: bool = False) -> bool:
        del connection, with_log  # A lost server connection raises an error.
        return True

    def is_reusable(self, connection: Any) -> bool:
        del connection
        return True

    def read_only_reason(self) -> str | None:
        return None

    def begin_write(self, cursor: Any) -> None:
        # Explicit, since the default of a server can differ.
        cursor.execute("BEGIN ISOLATION LEVEL READ COMMITTED")

    def begin_read(self, cursor: Any) -> None:
        # All queries of a read see one snapshot, so that counts and rows agree.
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def lift_time_limits(self, cursor: Any) -> None:
        cursor.execute(_LIFT_LIMITS)

    def commit(self, cursor: Any) -> None:
        cursor.execute("COMMIT")
        if cursor.statusmessage != "COMMIT":
            # After an error in the transaction, PostgreSQL answers COMMIT with a silent rollback.
            raise StoreUnavailable(f"{self.name} rolled the change back. Nothing was changed; try again.")

    def is_disconnect(self, error: Exception) -> bool:
        import psycopg

        if isinstance(error, psycopg.OperationalError):
            return error.sqlstate not in _BUSY
        return isinstance(error, psycopg.InterfaceError)

    def change_counter(self, cursor: Any) -> int:
        cursor.execute("SELECT (SELECT max(seq) FROM events), (SELECT max(seq) FROM live_output)")
        return hash(tuple(cursor.fetchone()))

    def translate(self, error: Exception) -> Exception:
        import psycopg

        if not isinstance(error, psycopg.Error):
            return error
        detail = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if (busy := _BUSY.get(error.sqlstate or "")) is not None:
            return StoreBusy(f"{self.name} {busy} ({detail}). Nothing was changed; try again.")
        match error:
            case psycopg.errors.UniqueViolation() | psycopg.errors.SerializationFailure():
                return Conflict(f"Another writer was first ({detail}). Read the list again and retry.")
            case psycopg.DataError():
                return InvalidInput(f"The value cannot be stored: {detail}.")
            case psycopg.errors.DataCorrupted() | psycopg.errors.IndexCorrupted():
                return StoreDamaged(f"{self.name} is damaged ({detail}).")
            case psycopg.errors.InsufficientPrivilege() | psycopg.errors.ReadOnlySqlTransaction():
                return StoreUnavailable(f"{self.name} is not writable for this user ({detail}).")
            case psycopg.errors.InvalidSchemaName():
                return StoreUnavailable(f"{self.name} has no schema in which this user may create tables ({detail}).")
            case psycopg.errors.DiskFull() | psycopg.OperationalError():
                return StoreUnavailable(f"{self.name} did not answer ({detail}). Nothing was changed; try again.")
        return error
