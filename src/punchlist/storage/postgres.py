"""PostgreSQL: row locks, snapshot reads, translated errors."""

from __future__ import annotations

from typing import Any

from punchlist.errors import Conflict, InvalidInput, StoreBusy, StoreDamaged, StoreUnavailable
from punchlist.storage.statements import Kind


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

        return psycopg.connect(self.url, autocommit=True, client_encoding="utf8")

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

    def commit(self, cursor: Any) -> None:
        cursor.execute("COMMIT")
        if cursor.statusmessage != "COMMIT":
            # After an error in the transaction, PostgreSQL answers COMMIT with a silent rollback.
            raise StoreUnavailable(f"{self.name} rolled the change back. Nothing was changed; try again.")

    def is_disconnect(self, error: Exception) -> bool:
        import psycopg

        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))

    def change_counter(self, cursor: Any) -> int:
        cursor.execute("SELECT (SELECT max(seq) FROM events), (SELECT max(seq) FROM live_output)")
        return hash(tuple(cursor.fetchone()))

    def translate(self, error: Exception) -> Exception:
        import psycopg

        if not isinstance(error, psycopg.Error):
            return error
        detail = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        match error:
            case psycopg.errors.UniqueViolation() | psycopg.errors.SerializationFailure():
                return Conflict(f"Another writer was first ({detail}). Read the list again and retry.")
            case psycopg.DataError():
                return InvalidInput(f"The value cannot be stored: {detail}.")
            case psycopg.errors.DeadlockDetected() | psycopg.errors.LockNotAvailable():
                return StoreBusy(f"{self.name} was busy ({detail}). Nothing was changed; try again.")
            case psycopg.errors.DataCorrupted() | psycopg.errors.IndexCorrupted():
                return StoreDamaged(f"{self.name} is damaged ({detail}).")
            case psycopg.errors.InsufficientPrivilege() | psycopg.errors.ReadOnlySqlTransaction():
                return StoreUnavailable(f"{self.name} is not writable for this user ({detail}).")
            case psycopg.errors.InvalidSchemaName():
                return StoreUnavailable(f"{self.name} has no schema in which this user may create tables ({detail}).")
            case psycopg.errors.DiskFull() | psycopg.OperationalError():
                return StoreUnavailable(f"{self.name} did not answer ({detail}). Nothing was changed; try again.")
        return error
