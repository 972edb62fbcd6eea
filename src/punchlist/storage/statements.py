"""SQL, written as SQL: one text for both databases, run on the driver's own cursor.

    FIND = Statement(f"SELECT {columns(Claim._fields)} FROM claims WHERE todo_id = :todo")
    tx.one(FIND, todo=todo_id)

A text names its parameters with a colon and keeps to what SQLite and PostgreSQL both know. It is put into a
driver's form at first use; from then on a call is one dictionary look-up and one `cursor.execute`. A test has both
databases prepare every statement there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, Literal

Kind = Literal["sqlite", "postgresql"]
Arrange = Callable[[Mapping[str, Any]], Any]

ROW_LOCK: Final = "FOR NO KEY UPDATE"
"""The lock of those who change a row: others may still refer to it."""
WHOLE_ROW_LOCK: Final = "FOR UPDATE"

_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z]\w*)")
_PLAIN: Final = re.compile(r"[a-z_]+")


class Statement:
    """One SQL statement with named parameters."""

    __slots__ = ("_lock", "_ready", "sql")

    def __init__(self, sql: str, *, lock: str = "") -> None:
        """`lock` is what PostgreSQL needs so that others wait; on SQLite a writer is alone anyway."""
        self.sql = sql
        self._lock = lock
        self._ready: dict[str, tuple[str, Arrange]] = {}

    def on(self, kind: Kind, params: Mapping[str, Any]) -> tuple[str, Any]:
        """The SQL text and the parameters as the driver wants them."""
        try:
            sql, arrange = self._ready[kind]
        except KeyError:
            sql, arrange = self._ready[kind] = self._for_sqlite() if kind == "sqlite" else self._for_postgresql()
        return sql, arrange(params)

    @property
    def names(self) -> list[str]:
        """Of its parameters, as often as they occur."""
        return _PARAMETER.findall(self.sql)

    def _for_sqlite(self) -> tuple[str, Arrange]:
        names = self.names
        arrange: Arrange = itemgetter(*names) if len(names) > 1 else lambda params: [params[name] for name in names]
        return _PARAMETER.sub("?", self.sql), arrange

    def _for_postgresql(self) -> tuple[str, Arrange]:
        sql = _PARAMETER.sub(r"%(\1)s", self.sql.replace("%", "%%"))
        return f"{sql} {self._lock}".rstrip(), lambda params: params


def columns(names: Iterable[str], *, of: str = "") -> str:
    """`a, b`, or `of.a, of.b` where several tables are read."""
    return ", ".join(f"{of}.{name}" if of else name for name in names)


def literals(values: Iterable[str]) -> str:
    """`'a', 'b'`: written out, so that an index over just these is seen to serve."""
    plain = [str(value) for value in values]
    assert plain
    assert all(_PLAIN.fullmatch(value) for value in plain), plain
    return ", ".join(f"'{value}'" for value in plain)


def insert(table: str, names: Iterable[str], *, unless: str = "") -> Statement:
    """A new row; with `unless`, none where that column says the same already: whoever comes second changes nothing."""
    names = list(names)
    clause = f" ON CONFLICT ({unless}) DO NOTHING" if unless else ""
    values = ", ".join(f":{name}" for name in names)
    return Statement(f"INSERT INTO {table} ({columns(names)}) VALUES ({values}){clause}")


def update(table: str, names: Iterable[str], *, where: str) -> Statement:
    """Give columns the values of the parameters named like them."""
    return Statement(f"UPDATE {table} SET {', '.join(f'{name} = :{name}' for name in names)} WHERE {where}")
