"""Statements written in SQLAlchemy Core, compiled once, run on the driver's own cursor.

Core gives us one SQL for two databases; its execution layer costs more than SQLite itself does.
A `Statement` keeps the first and skips the second: it is compiled for a dialect at first use, and
from then on a call is one dictionary look-up and one `cursor.execute`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement


class Statement:
    """One SQL statement with named parameters."""

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[str, tuple[str, tuple[str, ...] | None, dict[str, Any]]] = {}

    def for_dialect(self, dialect: Dialect, params: Mapping[str, Any]) -> tuple[str, Any]:
        """The SQL text and the parameters as the driver wants them."""
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = self._compile(dialect)
        sql, order, constants = compiled
        values = {**constants, **params} if constants else params
        return sql, values if order is None else [values[name] for name in order]

    def _compile(self, dialect: Dialect) -> tuple[str, tuple[str, ...] | None, dict[str, Any]]:
        compiled = self._clause.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        order = tuple(compiled.positiontup) if compiled.positiontup is not None else None
        constants = {name: value for name, value in compiled.params.items() if value is not None}
        return str(compiled), order, constants
