"""The store: short transactions on one database, with driver errors translated to `StoreError`s.

    with store.write() as tx:         # atomic: everything or nothing
        tx.run(INSERT_ROW, id=..., title=...)
        event_log.append(tx, change)
    with store.read() as tx:          # one consistent snapshot
        rows = tx.all(SELECT_ROWS, turn_id=...)

A write takes the database's write lock when it begins (SQLite) or the locks of the rows that it selects for update
(PostgreSQL), waits for other writers, and rolls back when its body raises. The store is synchronous: transactions are
short, and `async_bridge` moves them off event loops.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from typing import Any, Final, NoReturn

from punchlist.config import DEFAULT_POOL_SIZE
from punchlist.errors import InvalidInput, StoreBusy, StoreDamaged, StoreUnavailable
from punchlist.kernel.clock import Clock, system_clock, timestamp
from punchlist.kernel.events import Chain
from punchlist.storage.database import Database
from punchlist.storage.event_log import record_anchor, record_at_exit
from punchlist.storage.statements import Kind, Statement


class Transaction:
    """An open transaction, created by `Store.read` and `Store.write`."""

    def __init__(
        self,
        kind: Kind,
        cursor: Any,
        clock: Clock,
        appended: dict[str, int],
        exclusive: bool = False,
        chain: Chain | None = None,
    ) -> None:
        """`exclusive`: no other process writes to the database until the transaction ends. `chain` signs events."""
        self.chain = chain
        self.exclusive = exclusive
        self._appended = appended
        self._kind = kind
        self._cursor = cursor
        self._clock = clock
        self._now: str | None = None

    def run(self, statement: Statement, /, **params: Any) -> int:
        """Execute a statement; the number of changed rows."""
        self._cursor.execute(*statement.on(self._kind, params))
        return int(self._cursor.rowcount)

    def run_many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute a statement once for each row."""
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
        """For SQL without a portable form. Never pass user input."""
        self._cursor.execute(sql)
        rows: list[tuple[Any, ...]] = self._cursor.fetchall()
        return rows

    def raw_step(self, sql: str) -> None:
        """As `raw`, for SQL without a result."""
        self._cursor.execute(sql)

    def mark_appended(self, stream: str) -> None:
        """Count an append to a stream, so that caches in this process know when to read again."""
        if len(self._appended) >= MAX_STREAMS:
            self._appended.clear()
        self._appended[stream] = self._appended.get(stream, 0) + 1

    def now(self) -> str:
        """The time of this transaction, the same for everything it writes."""
        if self._now is None:
            self._now = timestamp(self._clock())
        return self._now


class _TransactionContext:
    """One transaction as a context manager."""

    __slots__ = ("_connection", "_cursor", "_long", "_store", "_writing")

    def __init__(self, store: Store, writing: bool, long: bool) -> None:
        self._store = store
        self._writing = writing
        self._long = long
        self._connection: Any = None

    def __enter__(self) -> Transaction:
        store = self._store
        try:
            self._begin()
        except Exception as error:
            # An idle connection may have been cut. Nothing has been executed yet, so retry on a new one.
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
            store.chain,
        )

    def _begin(self) -> None:
        """Begin on the file that is at the path now, which may be a new one."""
        store = self._store
        for _ in range(_ATTEMPTS):
            if self._try_begin():
                return
            store.connections.close()
            store.prepare(store)
        raise StoreUnavailable(
            f"{store.database.name} was removed or replaced {_ATTEMPTS} times in a row. Nothing was changed; try again."
        )

    def _try_begin(self) -> bool:
        """False if the connection leads to a file that was removed or replaced."""
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
                if self._long:
                    database.lift_time_limits(self._cursor)
                # The file may have been removed while this writer waited for others.
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
            # Closing the connection rolls back whatever was not committed.
            store.connections.discard(self._connection)
            if error is None:
                self._fail(failure)
        else:
            store.connections.release(self._connection)
            chain = store.chain
            if kind is None and self._writing and chain and chain.pending and time.monotonic() >= chain.due:
                record_anchor(store, chain)
        if isinstance(error, Exception):
            explained = store.translate(error)
            if explained is not error:
                raise explained from error

    def _fail(self, failure: BaseException) -> NoReturn:
        database = self._store.database
        if self._writing and isinstance(failure, Exception) and database.is_disconnect(failure):
            raise StoreUnavailable(
                f"{database.name} disconnected during a commit: the change may or may not have been made. "
                "Check before you retry."
            ) from failure
        self._store.raise_translated(failure)


class Savepoint:
    """A transaction inside another one (`Store.join`)."""

    __slots__ = ("_store", "_tx")

    def __init__(self, store: Store, tx: Transaction) -> None:
        self._store = store
        self._tx = tx

    def __enter__(self) -> Transaction:
        self._tx.raw_step("SAVEPOINT joined")
        return self._tx

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # The innermost savepoint of a name is the one that is meant.
        if kind is not None:
            self._tx.raw_step("ROLLBACK TO SAVEPOINT joined")
        self._tx.raw_step("RELEASE SAVEPOINT joined")
        if isinstance(error, Exception):
            explained = self._store.translate(error)
            if explained is not error:
                raise explained from error


_POOL_SECONDS: Final = 60.0
"""How long a caller waits for a connection while all are in use."""
_JOINED: ContextVar[Transaction | None] = ContextVar("joined", default=None)
"""The transaction of `Store.join` on this thread."""
MAX_STREAMS: Final = 10_000
_ATTEMPTS: Final = 5
"""Attempts to begin a transaction while the database is removed or replaced."""
_CHECK_SECONDS: Final = 0.01
"""How long a file-identity check stays valid."""


class ConnectionPool:
    """Idle connections: last in, first out, bounded, never shared across a fork.

    A general-purpose pool costs as much per check-out as a small SQLite transaction.
    """

    def __init__(
        self, connect: Callable[[], Any], is_reusable: Callable[[Any], bool], size: int, seconds: float = _POOL_SECONDS
    ) -> None:
        self._connect = connect
        self._is_reusable = is_reusable
        self._seconds = seconds
        self.size = size
        self._reset()

    def _reset(self) -> None:
        self._idle: deque[Any] = deque()
        self._tokens: SimpleQueue[None] = SimpleQueue()
        for _ in range(self.size):
            self._tokens.put(None)
        self._pid = os.getpid()
        # The last connection to a SQLite file that closes cleans up its log.
        weakref.finalize(self, _close_all, self._idle, self._pid)

    def acquire(self) -> Any:
        """An idle connection, or a new one."""
        if self._pid != os.getpid():
            self._reset()
        try:
            self._tokens.get(timeout=self._seconds)
        except Empty:
            raise StoreBusy(
                f"All {self.size} database connections of this process are in use. Nothing was changed; try again, or "
                "raise pool_size (docs/database.md)."
            ) from None
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._connect()
        except BaseException:
            self._tokens.put(None)
            raise

    def release(self, connection: Any) -> None:
        if not self._is_reusable(connection):
            self.discard(connection)
            return
        self._idle.append(connection)
        self._tokens.put(None)

    def discard(self, connection: Any) -> None:
        """Close a connection that may be in an undefined state after an error."""
        try:
            with suppress(Exception):
                connection.close()
        finally:
            self._tokens.put(None)

    def close(self) -> None:
        _close_all(self._idle, self._pid)


def _close_all(idle: deque[Any], pid: int) -> None:
    # A forked child must not even close its parent's connections.
    while idle and os.getpid() == pid:
        with suppress(Exception):
            idle.pop().close()


class Store:
    """One database. Thread-safe."""

    def __init__(
        self,
        database: Database,
        clock: Clock = system_clock,
        chain_key: bytes = b"",
        pool_size: int = DEFAULT_POOL_SIZE,
    ) -> None:
        """`chain_key` signs the events; without one, their hash chain is plain."""
        self.chain: Chain | None = None
        self.append_counts: dict[str, int] = {}
        """The number of appends by this process to each stream; lets caches skip reads."""
        self.database = database
        self.clock = clock
        self.connections = ConnectionPool(database.connect, database.is_reusable, pool_size)
        if chain_key:
            self.sign_with(chain_key)
        self._checked_at = 0.0
        self.prepare: Callable[[Store], None] = lambda _: None
        """Creates or upgrades the database; called before use and after the file was removed."""

    def sign_with(self, key: bytes) -> None:
        """Sign and verify events with a key from now on."""
        self.chain = Chain(key)
        weakref.finalize(self, record_at_exit, self.database, self.chain)

    def write(self, *, long: bool = False) -> AbstractContextManager[Transaction]:
        """`long`: maintenance, without the limits of time of a server."""
        joined = _JOINED.get()
        return Savepoint(self, joined) if joined is not None else _TransactionContext(self, True, long)

    def read(self, *, long: bool = False) -> AbstractContextManager[Transaction]:
        joined = _JOINED.get()
        return nullcontext(joined) if joined is not None else _TransactionContext(self, False, long)

    @contextmanager
    def join(self) -> Iterator[Transaction]:
        """A write that the transactions of all services called inside it become part of.

        Each of them is a savepoint: one that fails leaves nothing behind, and the others are committed together when
        the block ends. Other writers wait until then, so nothing slow may happen inside.
        """
        with self.write() as tx:
            token = _JOINED.set(tx)
            try:
                yield tx
            finally:
                _JOINED.reset(token)

    def is_current(self, connection: Any) -> bool:
        """Whether a connection leads to the file at the database's path. A recent result is good enough: readers lose
        nothing, and writers check again after they have begun."""
        now = time.monotonic()
        if now - self._checked_at < _CHECK_SECONDS:
            return True
        self._checked_at = now
        return self.database.is_same_file(connection)

    def external_change_marker(self) -> object | None:
        """A value that changes when another connection commits; None where only a query could tell (PostgreSQL)."""
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
            # A removed or replaced file counts as a change.
            mark = self.database.change_counter(cursor) if self.database.is_same_file(connection) else object()
            which = id(connection) if self.database.is_reusable(connection) else None
            cursor.close()
        except BaseException as error:
            self.connections.discard(connection)
            self.raise_translated(error)
        self.connections.release(connection)
        return which, mark

    def raise_translated(self, error: BaseException) -> NoReturn:
        """Raise a driver error as a `PunchlistError`, any other error unchanged."""
        explained = self.translate(error) if isinstance(error, Exception) else error
        if explained is error:
            raise error
        raise explained from error

    def translate(self, error: Exception) -> Exception:
        if isinstance(error, UnicodeEncodeError):
            return InvalidInput("Text with half of a surrogate pair can be neither stored nor searched for.")
        if isinstance(error, UnicodeDecodeError):
            return StoreDamaged.not_as_written("Text in the database")
        return self.database.translate(error)

    def close(self) -> None:
        if self.chain and self.chain.pending:
            record_anchor(self, self.chain)
        self.connections.close()
