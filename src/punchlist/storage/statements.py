"""Statements written in SQLAlchemy Core, compiled once, run on the driver's own cursor.

Core gives us one SQL for two databases; its execution layer costs more than SQLite itself does.
A `Statement` keeps the first and skips the second: it is compiled for a dialect at first use, and
from then on a call is one dictionary look-up and one `cursor.execute`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement

Arrange = Callable[[Mapping[str, Any]], Any]


class Statement:
    """One SQL statement with named parameters."""

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[str, tuple[str, Arrange]] = {}

    def for_dialect(self, dialect: Dialect, params: Mapping[str, Any]) -> tuple[str, Any]:
        """The SQL text and the parameters as the driver wants them."""
        try:
            sql, arrange = self._compiled[dialect.name]
        except KeyError:
            sql, arrange = self._compiled[dialect.name] = self._compile(dialect)
        return sql, arrange(params)

    def _compile(self, dialect: Dialect) -> tuple[str, Arrange]:
        compiled = self._clause.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        constants = {name: value for name, value in compiled.params.items() if value is not None}
        return str(compiled), _arranger(compiled.positiontup, constants)


def _arranger(order: Sequence[str] | None, constants: Mapping[str, Any]) -> Arrange:
    """By name for PostgreSQL, in the order of the question marks for SQLite; constants of the SQL put in."""
    if order is None:
        return lambda params: {**constants, **params}
    if constants or len(order) < 2:
        return lambda params: [params[name] if name in params else constants[name] for name in order]
    return itemgetter(*order)
