"""Every SQL text there is, put before both databases."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import punchlist
from punchlist.storage.statements import Statement, literals
from punchlist.storage.store import Store


def _modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(punchlist.__path__, "punchlist."):
        if not any(part in module.name for part in (".migrations", ".adapters.", "__main__")):
            yield importlib.import_module(module.name)


def _found(value: object) -> Iterator[Statement]:
    if isinstance(value, Statement):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _found(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _found(one)


def _statements() -> dict[str, Statement]:
    found: dict[int, tuple[str, Statement]] = {}
    for module in _modules():
        for name, value in vars(module).items():
            for number, statement in enumerate(_found(value)):
                found.setdefault(id(statement), (f"{module.__name__}.{name}[{number}]", statement))
    return dict(found.values())


def test_both_databases_understand_every_statement(store: Store) -> None:
    statements = _statements()
    assert len(statements) > 150
    refused = []
    for name, statement in statements.items():
        if problem := _problem(store, statement):
            refused.append(f"{name}: {problem}\n    {statement.sql}")
    assert not refused, "\n".join(refused)


def test_a_statement_that_does_not_fit_the_schema_is_refused(store: Store) -> None:
    assert _problem(store, Statement("SELECT id FROM turns WHERE id = :id")) is None
    assert _problem(store, Statement("SELECT id, colour FROM turns WHERE id = :id")) is not None


def _problem(store: Store, statement: Statement) -> str | None:
    """What the database says to it, without running it."""
    connection = store.database.connect()
    try:
        if store.database.kind == "sqlite":
            sql, values = statement.on("sqlite", dict.fromkeys(statement.names))
            connection.execute(f"EXPLAIN {sql}", values)
        else:
            sql, _ = statement.on("postgresql", {})
            numbers = {name: f"${number}" for number, name in enumerate(dict.fromkeys(statement.names), start=1)}
            numbered = re.sub(r"%\((\w+)\)s", lambda found: numbers[found[1]], sql).replace("%%", "%")
            connection.execute(f"PREPARE one AS {numbered}")
    except store.database.driver_error as error:
        return str(error)
    finally:
        connection.close()
    return None


def test_parameters_go_where_they_are_named() -> None:
    statement = Statement("SELECT :b, :a, :b || '%'")
    assert statement.on("sqlite", {"a": 1, "b": 2, "c": 3}) == ("SELECT ?, ?, ? || '%'", (2, 1, 2))
    assert statement.on("postgresql", {"a": 1, "b": 2}) == ("SELECT %(b)s, %(a)s, %(b)s || '%%'", {"a": 1, "b": 2})


def test_one_parameter_and_none_are_given_as_the_driver_wants_them() -> None:
    assert Statement("SELECT :a").on("sqlite", {"a": "text"}) == ("SELECT ?", ["text"])
    assert Statement("SELECT 1").on("sqlite", {}) == ("SELECT 1", [])


def test_a_lock_is_for_the_database_that_has_several_writers() -> None:
    statement = Statement("SELECT 1 FROM t", lock="FOR UPDATE")
    assert statement.on("sqlite", {})[0] == "SELECT 1 FROM t"
    assert statement.on("postgresql", {})[0] == "SELECT 1 FROM t FOR UPDATE"


def test_only_plain_words_are_written_into_sql() -> None:
    assert literals(["open", "in_progress"]) == "'open', 'in_progress'"
    with pytest.raises(AssertionError):
        literals(["it's"])
