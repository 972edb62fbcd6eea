"""`punchlist db check`: everything that can be known about a database's health, in one pass.

The store's own check finds broken pages and indexes. The chains find events that were changed,
dropped or moved. The replay finds rows that differ from what the events made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Text, bindparam, func, select, tuple_

from punchlist.checklist import replay as checklist_replay
from punchlist.checklist import service as checklist
from punchlist.errors import StoreDamaged, StoreError
from punchlist.kernel.events import Event
from punchlist.plan import replay as plan_replay
from punchlist.plan.repository import TurnTodoRepository
from punchlist.storage import eventlog, schema, upkeep
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction

MOST_PROBLEMS: Final = 20
LARGE_ROWS: Final = 1_000_000
LARGE_BYTES: Final = 1_000_000_000
_PAGE: Final = 2_000

_EVENTS_FROM: Final = Statement(
    select(*eventlog.COLUMNS)
    .where(tuple_(schema.events.c.stream, schema.events.c.version) > tuple_(bindparam("stream"), bindparam("version")))
    .order_by(schema.events.c.stream, schema.events.c.version)
    .limit(bindparam("most"))
)


@dataclass(frozen=True, slots=True)
class Size:
    table: str
    rows: int
    bytes: int


@dataclass(slots=True)
class Report:
    revision: str
    sizes: list[Size] = field(default_factory=list)
    events: int = 0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        return not self.problems


def check(store: Store, revision: str, progress: Callable[[int], None] = lambda _: None) -> Report:
    """Read it all once. Writers may go on meanwhile: the check sees one moment."""
    report = Report(revision)
    try:
        report.problems += upkeep.integrity_problems(store)
        with store.read() as tx:
            _check_trail(tx, report, progress)
            report.sizes = [_size(tx, table) for table in upkeep.TABLES]
    except StoreError as error:
        report.problems.append(str(error))
    del report.problems[MOST_PROBLEMS:]
    for size in report.sizes:
        if size.rows > LARGE_ROWS or size.bytes > LARGE_BYTES:
            report.warnings.append(f"{size.table} has grown to {size.rows:,} rows and {size.bytes:,} bytes.")
    return report


def _check_trail(tx: Transaction, report: Report, progress: Callable[[int], None]) -> None:
    todos = lists = 0
    for events in _streams(tx):
        report.events += len(events)
        progress(report.events)
        broken = list(eventlog.broken_links(events))
        report.problems += broken
        kind, _, owner = events[0].stream.partition(":")
        if kind == "plan":
            todos += sum(1 for event in events if event.action == "create")
        elif kind == "checklist":
            lists += 1
        if not broken:
            report.problems += _compare(tx, kind, owner, events)
    report.problems += _count(tx, schema.turn_todos.name, todos) + _count(tx, schema.checklists.name, lists)


def _streams(tx: Transaction) -> Iterator[list[Event]]:
    """The events of each stream together, read in pages."""
    current: list[Event] = []
    stream, version = "", 0
    while rows := tx.all(_EVENTS_FROM, stream=stream, version=version, most=_PAGE):
        for row in rows:
            event = Event(*row)
            if current and current[0].stream != event.stream:
                yield current
                current = []
            current.append(event)
        stream, version = current[-1].stream, current[-1].version
    if current:
        yield current


def _compare(tx: Transaction, kind: str, owner: str, events: list[Event]) -> list[str]:
    """How the rows of a list differ from its events."""
    try:
        if kind == "checklist":
            same = checklist.read(tx, owner) == checklist_replay.replay(events)
            return [] if same else [f"checklist:{owner}: the list is not what its events made of it"]
        if kind == "plan":
            told = plan_replay.replay(owner, events)
            found = {todo.id: todo for todo in TurnTodoRepository(tx).find_by_turn(owner)}
            wrong = [todo_id for todo_id in told | found if told.get(todo_id) != found.get(todo_id)]
            return [f"plan:{owner}: todo {todo_id} is not what its events made of it" for todo_id in wrong]
    except StoreDamaged as error:
        return [str(error)]
    except (KeyError, ValueError, TypeError) as error:
        return [f"{kind}:{owner}: its events cannot be replayed ({error!r})"]
    return []


def _count(tx: Transaction, table: str, expected: int) -> list[str]:
    row = tx.one(Statement(select(func.count()).select_from(schema.metadata.tables[table])))
    found = row[0] if row else 0
    return [] if found == expected else [f"{table}: has {found} rows, its events made {expected}"]


def _size(tx: Transaction, name: str) -> Size:
    table = schema.metadata.tables[name]
    lengths = [func.coalesce(func.sum(func.length(column)), 0) for column in table.c if isinstance(column.type, Text)]
    row = tx.one(Statement(select(func.count(), *lengths).select_from(table)))
    assert row is not None
    rows, *totals = map(int, row)
    return Size(name, rows, sum(totals))
