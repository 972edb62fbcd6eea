"""The store: short transactions over one database, and errors people can act on.

    with store.write() as tx:      # one transaction: all of it or none of it
        tx.run(INSERT_ROW, id=..., title=...)
        eventlog.append(tx, change)  # its event
    with store.read() as tx:       # one consistent view
        rows = tx.all(SELECT_ROWS, turn_id=...)

A write takes the write lock at its beginning (SQLite) or the locks of the rows it names
(PostgreSQL), waits for other writers, and leaves nothing behind when its body raises. Nothing here
is asynchronous: transactions are short, and the surfaces move them off their event loops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NoReturn, Protocol

from punchlist.errors import InvalidInput, StoreDamaged, StoreUnavailable
from punchlist.kernel.clock import Clock, system_clock, timestamp
from punchlist.storage.connection_pool import ConnectionPool
from punchlist.storage.statements import Kind, Statement


class Database(Protocol):
    """What differs between SQLite and PostgreSQL."""

    kind: Kind
    name: str
    """For people: never with a password."""
    one_writer: bool
    """A write has the whole database to itself, so that no row needs a lock."""
    list_tables: str
    """SQL for the names of all tables that a statement would find."""

    @property
    def driver_error(self) -> type[Exception]: ...

    def connect(self) -> Any:
        """A connection of the driver, set up like all of them, on which nothing has begun."""

    def is_missing(self) -> bool:
        """Whether there is nothing yet that one could connect to, until it is made."""

    def is_same_file(self, connection: Any, *, with_log: bool = False) -> bool:
        """Whether it is a connection to what has the database's name now: a file may be removed or replaced while it
        is open, and whatever is written to it then is gone. With `with_log`, so may the log be that it writes to."""

    def begin_write(self, cursor: Any) -> None: ...

    def begin_read(self, cursor: Any) -> None: ...

    def commit(self, cursor: Any) -> None: ...

    def is_disconnect(self, error: Exception) -> bool:
        """Whether the connection is gone, rather than the statement wrong."""

    def change_counter(self, cursor: Any) -> int:
        """A number that differs after another connection has written."""

    def translate(self, error: Exception) -> Exception:
        """The driver's error in our words; the same error when it is none of the driver's."""


class Transaction:
    """A transaction that is open; made by `Store.read` and `Store.write`."""

    def __init__(self, kind: Kind, cursor: Any, clock: Clock, appended: dict[str, int], alone: bool = False) -> None:
        """`alone`: nobody else writes to the database until it ends."""
        self.exclusive = alone
        self._appended = appended
        self._kind = kind
        self._cursor = cursor
        self._clock = clock
        self._now: str | None = None

    def run(self, statement: Statement, /, **params: Any) -> int:
        """Execute; the number of rows that were changed."""
        self._cursor.execute(*statement.on(self._kind, params))
        return int(self._cursor.rowcount)

    def run_many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute once for each of `rows`."""
        if len(rows) == 1:
            self.run(statement, **rows[0])
        elif rows:
            prepared = [statement.on(self._kind, row) for row in rows]
            self._cursor.executemany(prepared[0][0], [values for _, values in prepared])

    def one(self, statement: Statement, /, **params: Any) -> tuple[Any, ...] | None:
        self._cursor.execute(*statement.on(self._kind, params))
        row = self._cursor.fetchone()
        return None if row is None else tuple(row)

    def all(self, statement: Statement, /, **params: Any) -> list[tuple[Any, ...]]:
        self._cursor.execute(*statement.on(self._kind, params))
        rows: list[tuple[Any, ...]] = self._cursor.fetchall()
        return rows

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        """For what has no portable form; never with anything a caller sent."""
        self._cursor.execute(sql)
        rows: list[tuple[Any, ...]] = self._cursor.fetchall()
        return rows

    def mark_appended(self, stream: str) -> None:
        """Something is added to a stream; what others have seen of it may be old."""
        if len(self._appended) >= MAX_STREAMS:
            self._appended.clear()
        self._appended[stream] = self._appended.get(stream, 0) + 1

    def now(self) -> str:
        """The moment of this transaction: the same for all that it writes."""
        if self._now is None:
            self._now = timestamp(self._clock())
        return self._now


class _TransactionContext:
    """One transaction from begin to end, as a context manager."""

    __slots__ = ("_connection", "_cursor", "_store", "_writing")

    def __init__(self, store: Store, writing: bool) -> None:
        self._store = store
        self._writing = writing
        self._connection: Any = None

    def __enter__(self) -> Transaction:
        store = self._store
        try:
            self._begin()
        except Exception as error:
            # An idle connection may have been cut long ago. Nothing has begun, so begin on a new one.
            if self._connection is None or not store.database.is_disconnect(error):
                store.raise_translated(error)
            store.connections.close()
            try:
                self._begin()
            except Exception as again:
                store.raise_translated(again)
        return Transaction(
            store.database.kind,
            self._cursor,
            store.clock,
            store.append_counts,
            self._writing and store.database.one_writer,
        )

    def _begin(self) -> None:
        """On the database that has the name now, which may be a new one."""
        store = self._store
        for _ in range(_ATTEMPTS):
            if self._has_begun():
                return
            store.connections.close()
            store.prepare(store)
        raise StoreUnavailable(
            f"{store.database.name} is removed or replaced all the time. Nothing was changed; try again."
        )

    def _has_begun(self) -> bool:
        """False where what could be had leads to a file that is gone."""
        store, database = self._store, self._store.database
        try:
            self._connection = store.connections.acquire()
        except Exception:
            if not database.is_missing():
                raise
            return False
        try:
            if store.is_current(self._connection):
                self._cursor = self._connection.cursor()
                begin = database.begin_write if self._writing else database.begin_read
                begin(self._cursor)
                # A writer may have waited for others, and meanwhile the file may have gone.
                if not self._writing or database.is_same_file(self._connection, with_log=True):
                    return True
        except BaseException:
            store.connections.discard(self._connection)
            raise
        store.connections.discard(self._connection)
        return False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        store = self._store
        try:
            if self._writing and kind is None:
                store.database.commit(self._cursor)
            else:
                self._cursor.execute("ROLLBACK")
            self._cursor.close()
        except BaseException as failure:
            # The connection goes, and with it whatever was not committed.
            store.connections.discard(self._connection)
            if error is None:
                self._fail(failure)
        else:
            store.connections.release(self._connection)
        if isinstance(error, Exception):
            explained = store.translate(error)
            if explained is not error:
                raise explained from error

    def _fail(self, failure: BaseException) -> NoReturn:
        database = self._store.database
        if self._writing and isinstance(failure, Exception) and database.is_disconnect(failure):
            raise StoreUnavailable(
                f"{database.name} went away just when a change was to be kept: it may have been made, or not. "
                "Look before you try again."
            ) from failure
        self._store.raise_translated(failure)


MAX_STREAMS: Final = 10_000
_ATTEMPTS: Final = 5
"""How often a transaction begins anew because the database was removed or replaced just then."""
_RECENT: Final = 0.01


class Store:
    """One database. Safe to share between threads; cheap to share between processes."""

    def __init__(self, database: Database, clock: Clock = system_clock) -> None:
        self.append_counts: dict[str, int] = {}
        """How often this process has written to each stream; for those who want to know whether to look again."""
        self.database = database
        self.clock = clock
        self.connections = ConnectionPool(database.connect)
        self._looked = 0.0
        self.prepare: Callable[[Store], None] = lambda _: None
        """Makes sure that the database is there, and as we want it."""

    def write(self) -> AbstractContextManager[Transaction]:
        return _TransactionContext(self, writing=True)

    def read(self) -> AbstractContextManager[Transaction]:
        return _TransactionContext(self, writing=False)

    def is_current(self, connection: Any) -> bool:
        """Whether a connection still leads to what people call the database. Readers lose nothing and writers ask once
        more when they have begun: a recent answer will do."""
        now = time.monotonic()
        if now - self._looked < _RECENT:
            return True
        self._looked = now
        return self.database.is_same_file(connection)

    def external_change_marker(self) -> object | None:
        """Differs after anybody else has written than those who use the connection that is first in line; None where
        that cannot be known without asking for what was written."""
        if not self.database.one_writer:
            return None
        try:
            connection = self.connections.acquire()
        except Exception as error:
            if self.database.is_missing():
                return object()
            self.raise_translated(error)
        try:
            cursor = connection.cursor()
            # Of a file that is gone nobody can tell; but that is a change.
            mark = self.database.change_counter(cursor) if self.database.is_same_file(connection) else object()
            cursor.close()
        except BaseException as error:
            self.connections.discard(connection)
            self.raise_translated(error)
        self.connections.release(connection)
        return id(connection), mark

    def raise_translated(self, error: BaseException) -> NoReturn:
        """Raise an error of the driver in our words, any other as it is."""
        explained = self.translate(error) if isinstance(error, Exception) else error
        if explained is error:
            raise error
        raise explained from error

    def translate(self, error: Exception) -> Exception:
        if isinstance(error, UnicodeEncodeError):
            return InvalidInput("Text with half of a surrogate pair can neither be stored nor looked for.")
        if isinstance(error, UnicodeDecodeError):
            return StoreDamaged.not_as_written("Text in the database")
        return self.database.translate(error)

    def close(self) -> None:
        self.connections.close()
