"""The tables, indexes, triggers and views of a database, compared with those that the migrations create.

Every start compares a digest, which takes one query and one hash (`open.py`). A digest that differs from
`SCHEMA_DIGESTS` is explained by `schema_differences`, which applies the migrations to an empty database in memory.

SQLite stores the text of every CREATE statement, so its objects are compared by text. PostgreSQL stores none; there,
the comparison covers columns, types, defaults, constraints, indexes, triggers, rules, policies and views.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from punchlist.storage.open import digest_of, sqlite_objects
from punchlist.storage.schema_version import SCHEMA_DIGESTS, SCHEMA_VERSION
from punchlist.storage.statements import Kind

if TYPE_CHECKING:
    import sqlite3


class SchemaObject(NamedTuple):
    type: str
    name: str
    table: str
    """The table that the object belongs to."""
    definition: str


# Every relation in the schema of the version table, except those of extensions.
_POSTGRESQL_OBJECTS: Final = """
WITH ours AS (
    SELECT c.oid, c.relname, c.relkind, c.relrowsecurity FROM pg_class c
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('punchlist_schema'))
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
)
SELECT CASE WHEN relkind IN ('r', 'p') THEN 'table' ELSE 'view' END, relname, relname,
    CASE WHEN relkind IN ('r', 'p') THEN
    (SELECT string_agg(
        attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END
        || coalesce(' default ' || pg_get_expr(adbin, adrelid), ''), E'\\n' ORDER BY attname COLLATE "C")
        FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE attrelid = ours.oid AND attnum > 0 AND NOT attisdropped)
    || coalesce((SELECT string_agg(
        E'\\n' || CASE contype WHEN 'c' THEN 'check ' || conname ELSE contype::text END
        || ' ' || pg_get_constraintdef(oid), '' ORDER BY contype, conname COLLATE "C")
        FROM pg_constraint WHERE conrelid = ours.oid AND contype <> 'n' AND contype <> 't'), '')
    || CASE WHEN relrowsecurity THEN E'\\nrow security' ELSE '' END
    ELSE '' END
FROM ours WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
UNION ALL
SELECT 'index', ours.relname, owner.relname, pg_get_indexdef(ours.oid)
FROM ours JOIN pg_index ON indexrelid = ours.oid AND NOT indisprimary JOIN pg_class owner ON owner.oid = indrelid
UNION ALL
SELECT 'trigger', tgname, ours.relname, '' FROM ours JOIN pg_trigger ON tgrelid = ours.oid AND NOT tgisinternal
UNION ALL
SELECT 'rule', rulename, ours.relname, '' FROM ours JOIN pg_rewrite ON ev_class = ours.oid AND rulename <> '_RETURN'
UNION ALL
SELECT 'policy', polname, ours.relname, '' FROM ours JOIN pg_policy ON polrelid = ours.oid
"""


def schema_differences(connection: Any, kind: Kind, version: str | None = None) -> list[str]:
    """One line for each object that was added, removed or changed; empty in the usual case, at the cost of a digest.

    Without a version, the database is compared with the current one.
    """
    stored = stored_objects(connection, kind)
    if version in (None, SCHEMA_VERSION) and digest_of(stored) == SCHEMA_DIGESTS[kind]:
        return []
    return list(_differences(expected_objects(kind, version), stored))


def stored_objects(connection: Any, kind: Kind) -> list[SchemaObject]:
    if kind == "sqlite":
        return [SchemaObject(*row) for row in sqlite_objects(connection)]
    # PostgreSQL quotes and casts in its own way, which `_plain` undoes.
    found = (SchemaObject(*row) for row in connection.execute(_POSTGRESQL_OBJECTS).fetchall())
    return [each._replace(definition=_plain(each.definition)) for each in found]


def expected_objects(kind: Kind, version: str | None = None) -> list[SchemaObject]:
    """The objects of a new database at a version, by default the current one."""
    import sqlite3
    from contextlib import closing

    from punchlist.storage.migrate import CREATE_VERSION, migrations

    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in migrations():
            if version is None or migration.version <= version:
                for statement in migration.statements(kind):
                    # Rows are no objects, and SQLite does not have the functions of PostgreSQL.
                    if not _INSERT.search(statement.sql):
                        connection.execute(statement.sql.replace(_GIN, ""))
        connection.execute(CREATE_VERSION)
        stored = stored_objects(connection, "sqlite")
        return stored if kind == "sqlite" else [*_as_on_postgresql(connection, stored)]


def _differences(expected: Iterable[SchemaObject], stored: Iterable[SchemaObject]) -> Iterator[str]:
    ours, found = ({(each.type, each.name): each for each in objects} for objects in (expected, stored))
    for type, name in sorted(ours | found):
        one, other = ours.get((type, name)), found.get((type, name))
        if one is None:
            assert other is not None
            where = f" on {other.table}" if other.table != name else ""
            yield f"schema: the {type} {name}{where} was added"
        elif other is None:
            yield f"schema: the {type} {name} is missing"
        elif one != other:
            yield f"schema: the {type} {name} was changed"


_GIN: Final = " USING gin"
_INSERT: Final = re.compile("^INSERT ", re.MULTILINE)
_TYPES: Final = {"BIGSERIAL": "bigint", "FLOAT": "double precision", "VARCHAR(32)": "character varying(32)"}
_CHECK: Final = re.compile(r"CONSTRAINT (\w+) (CHECK .*?)\n?,?\n")
_LITERAL: Final = re.compile(r"'([^']*)'")


def _as_on_postgresql(connection: sqlite3.Connection, objects: Iterable[SchemaObject]) -> Iterator[SchemaObject]:
    """The objects as `_POSTGRESQL_OBJECTS` describes them."""
    for each in objects:
        if each.type == "table":
            yield each._replace(definition=_plain("\n".join(_table_lines(connection, each))))
        elif each.definition:
            yield each._replace(definition=_plain(each.definition))


def _table_lines(connection: sqlite3.Connection, table: SchemaObject) -> Iterator[str]:
    columns = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
    for _, name, type, not_null, stated, _ in sorted(columns, key=lambda column: column[1]):
        default = f"nextval('{table.name}_{name}_seq')" if type == "BIGSERIAL" else stated
        required, given = " not null" if not_null else "", f" default {default}" if default is not None else ""
        yield f"{name} {_TYPES.get(type, type.lower())}{required}{given}"
    yield from (f"check {name} {text}" for name, text in sorted(_CHECK.findall(table.definition)))
    for row in sorted(connection.execute(f"PRAGMA foreign_key_list({table.name})").fetchall(), key=lambda row: row[3]):
        action = f" ON DELETE {row[6]}" if row[6] != "NO ACTION" else ""
        yield f"f FOREIGN KEY ({row[3]}) REFERENCES {row[2]}({row[4]}){action}"
    key = ", ".join(column[1] for column in columns if column[5])
    yield f"p PRIMARY KEY ({key})"


_CONDITION: Final = re.compile(r"(?<= WHERE )[^\n]*|(?<=CHECK )[^\n]*")


def _plain(definition: str) -> str:
    """A definition without what the two databases write differently: casts, quotes, schemas. Of conditions, the
    literals are left."""
    text = (
        re.sub(r"::[a-z]+( [a-z]+)?(\[\])?", "", definition)
        .replace(" USING btree", "")
        .replace(_GIN, "")
        .replace('"', "")
    )
    text = re.sub(r"\b\w+\.", "", text)
    text = re.sub(r"default '(-?\d+)'", r"default \1", text)
    text = re.sub(r"\s*\n(?=WHERE)", " ", text)
    return _CONDITION.sub(lambda found: " ".join(sorted(_LITERAL.findall(found[0]))), text)
