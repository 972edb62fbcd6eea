"""SQL statements as text, one for both databases, executed on the driver's cursor.

    FIND = Statement("SELECT holder, fence FROM claims WHERE todo_id = :todo")
    tx.one(FIND, todo=todo_id)

`SelectOne`, `SelectAll` and `Insert` are statements that can be called; they convert between rows and values:

    find = SelectOne(Claim._make, f"{select('claims', Claim._fields)} WHERE todo_id = :todo")
    find(tx, todo_id)

A statement names its parameters with a colon and uses only SQL that SQLite and PostgreSQL share. It is converted to
the driver's form at first use; after that, a call is one dictionary lookup and one `cursor.execute`. A test prepares
every statement on both databases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from punchlist.storage.store import Transaction

T = TypeVar("T")
Kind = Literal["sqlite", "postgresql"]
Arrange = Callable[[Mapping[str, Any]], Any]

ROW_LOCK: Final = "FOR NO KEY UPDATE"
"""For changing a row; other transactions may still reference it."""
WHOLE_ROW_LOCK: Final = "FOR UPDATE"

_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z]\w*)")
_PLAIN: Final = re.compile(r"[a-z_]+")


class Statement:
    """One SQL statement with named parameters."""

    __slots__ = ("_lock", "_postgresql", "_ready", "sql")

    def __init__(self, sql: str, *, lock: str = "", postgresql: str | None = None) -> None:
        """`lock` is the locking clause for PostgreSQL; SQLite has one writer anyway. `postgresql` is the text for
        PostgreSQL where the databases share none: full-text search."""
        self.sql = sql
        self._lock = lock
        self._postgresql = postgresql or sql
        self._ready: dict[str, tuple[str, Arrange]] = {}

    def on(self, kind: Kind, params: Mapping[str, Any]) -> tuple[str, Any]:
        """The SQL text and the parameters in the form of the driver."""
        try:
            sql, arrange = self._ready[kind]
        except KeyError:
            sql, arrange = self._ready[kind] = self._for_sqlite() if kind == "sqlite" else self._for_postgresql()
        return sql, arrange(params)

    @property
    def names(self) -> list[str]:
        """The names of all parameters, with repetitions."""
        return _PARAMETER.findall(self.sql)

    def _for_sqlite(self) -> tuple[str, Arrange]:
        names = self.names
        arrange: Arrange = itemgetter(*names) if len(names) > 1 else lambda params: [params[name] for name in names]
        return _PARAMETER.sub("?", self.sql), arrange

    def _for_postgresql(self) -> tuple[str, Arrange]:
        sql = _PARAMETER.sub(r"%(\1)s", self._postgresql.replace("%", "%%"))
        return f"{sql} {self._lock}".rstrip(), lambda params: params


class _Select(Statement, Generic[T]):
    __slots__ = ("_build", "_parameters")

    def __init__(
        self, build: Callable[[tuple[Any, ...]], T], sql: str, *, lock: str = "", postgresql: str | None = None
    ) -> None:
        """`build` makes a value from a row."""
        super().__init__(sql, lock=lock, postgresql=postgresql)
        self._build = build
        self._parameters = tuple(dict.fromkeys(self.names))

    def _bind(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Positional values belong to the parameters in the order of their first appearance in the SQL."""
        return {**dict(zip(self._parameters[: len(values)], values, strict=True)), **named} if values else named


class SelectOne(_Select[T]):
    """SELECT at most one row."""

    __slots__ = ()

    def __call__(self, tx: Transaction, /, *values: Any, **named: Any) -> T | None:
        row = tx.one(self, **self._bind(values, named))
        return None if row is None else self._build(row)


class SelectAll(_Select[T]):
    """SELECT any number of rows."""

    __slots__ = ()

    def __call__(self, tx: Transaction, /, *values: Any, **named: Any) -> list[T]:
        return [self._build(row) for row in tx.all(self, **self._bind(values, named))]


def first_column(row: tuple[Any, ...]) -> Any:
    """For a SELECT of one column."""
    return row[0]


class Insert(Statement):
    """INSERT a named tuple as a row; False if the row was not inserted."""

    __slots__ = ()

    def __call__(self, tx: Transaction, row: Any, /, **more: Any) -> bool:
        return bool(tx.run(self, **row._asdict(), **more))


def columns(names: Iterable[str], *, of: str = "") -> str:
    """`a, b`, or `of.a, of.b`."""
    return ", ".join(f"{of}.{name}" if of else name for name in names)


def select(table: str, names: Iterable[str]) -> str:
    """`SELECT table.a, table.b FROM table`, to be followed by the conditions."""
    return f"SELECT {columns(names, of=table)} FROM {table}"


def literals(values: Iterable[str]) -> str:
    """`'a', 'b'` as literals, so that the planner can use a partial index over these values."""
    plain = [str(value) for value in values]
    assert plain
    assert all(_PLAIN.fullmatch(value) for value in plain), plain
    return ", ".join(f"'{value}'" for value in plain)


def insert(table: str, names: Iterable[str], *, unless: str = "") -> Insert:
    """INSERT one row; with `unless`, nothing if a row with the same value in that column exists."""
    names = list(names)
    clause = f" ON CONFLICT ({unless}) DO NOTHING" if unless else ""
    values = ", ".join(f":{name}" for name in names)
    return Insert(f"INSERT INTO {table} ({columns(names)}) VALUES ({values}){clause}")


def update(table: str, names: Iterable[str], *, where: str) -> Statement:
    """UPDATE columns from the parameters of the same names."""
    return Statement(f"UPDATE {table} SET {', '.join(f'{name} = :{name}' for name in names)} WHERE {where}")
