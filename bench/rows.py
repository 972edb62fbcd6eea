"""Rows as the services would write them, with valid checksums and hash chains, generated without the services.

A session has a hundred turns with ten todos each, and an event per todo. All turns except the last have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from punchlist.conversations.lifecycle import TurnAction, TurnStatus
from punchlist.conversations.model import Conversation, StoredTurn
from punchlist.conversations.service import stream as conversation_stream
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import GENESIS, Actor, Change, Event, Role, canonical_json, chain_hash
from punchlist.kernel.ids import new_id
from punchlist.plan.lifecycle import PlanAction, PlanStatus
from punchlist.plan.model import NewTodo, TurnTodo, plan_stream

TODOS_PER_TURN: Final = 10
TURNS_PER_SESSION: Final = 100
FIRST_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)
ACTOR: Final = Actor(Role.SUPERVISOR, "bench")
_ACTOR: Final = str(ACTOR)

ITEM: Final = NewTodo(
    title="Write the tests of the parser",
    context="src/parser.py has none yet; the grammar is in docs/grammar.md.",
    completion_criteria="pytest tests/test_parser.py passes and covers every rule of the grammar.",
)

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]
"""Rows by table, in an order that satisfies foreign keys."""

COLUMNS: Final = {
    "conversations": list(Conversation.__annotations__),
    "turns": list(StoredTurn.__annotations__),
    "turn_todos": [*TurnTodo.__annotations__, "checksum"],
    "events": [name for name in Event.__annotations__ if name != "seq"],
}


def insert(table: str, mark: str = "?") -> str:
    columns = COLUMNS[table]
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"


def all_rows(todos: int) -> Iterator[Rows]:
    """The rows of each session, with this many todos in total."""
    per_session = TODOS_PER_TURN * TURNS_PER_SESSION
    for number, first in enumerate(range(0, todos, per_session)):
        yield session_rows(number, min(per_session, todos - first))


def session_name(number: int) -> str:
    return f"session-{number:07}"


def session_rows(number: int, todos: int) -> Rows:
    session, moment = session_name(number), FIRST_DAY + timedelta(minutes=number)
    conversation = Conversation(session, "", "{}", timestamp(moment))
    stream = Stream(conversation_stream(session), session)
    rows: Rows = {table: [] for table in COLUMNS}
    rows["conversations"].append(_row(conversation))
    rows["events"].append(stream.event(conversation.created_at, "start", session, _creation_data(conversation)))
    for first in range(0, todos, TODOS_PER_TURN):
        is_last = first + TODOS_PER_TURN >= todos
        started, ended = timestamp(moment + timedelta(seconds=first)), timestamp(moment + timedelta(seconds=first + 5))
        turn = StoredTurn(new_id(), session, None, ACTOR.name, None, started, None)
        rows["events"].append(
            stream.event(started, TurnAction.BEGIN.value, turn.id, _creation_data(turn), to=TurnStatus.OPEN.value)
        )
        for todo, event in plan_rows(session, turn.id, started, min(TODOS_PER_TURN, todos - first)):
            rows["turn_todos"].append(todo)
            rows["events"].append(event)
        if not is_last:
            turn = turn._replace(end_reason="done", ended_at=ended)
            outcome = canonical_json({"ended_at": ended, "end_reason": turn.end_reason})
            states = (TurnStatus.OPEN.value, TurnStatus.ENDED.value)
            rows["events"].append(stream.event(ended, TurnAction.END.value, turn.id, outcome, *states))
        rows["turns"].append(_row(turn))
    return rows


def _row(value: Conversation | StoredTurn) -> Row:
    return tuple(getattr(value, name) for name in type(value).__annotations__)


def _creation_data(value: Conversation | StoredTurn) -> str:
    """The data of the event that created it."""
    return canonical_json(dict(zip(type(value).__annotations__, _row(value), strict=True)))


def plan_rows(session: str, turn_id: str, at: str, todos: int) -> Iterator[tuple[Row, Row]]:
    """The row of each todo of a turn, with the row of its event."""
    stream = Stream(plan_stream(turn_id), session)
    pending = PlanStatus.PENDING.value
    for position in range(todos):
        todo = _todo(new_id(), session, turn_id, position, at)
        event = stream.event(at, PlanAction.CREATE.value, todo.id, _description(position), to=pending)
        yield (*todo[:7], pending, *todo[8:], todo.checksum()), event


def _todo(id: str, session: str, turn_id: str, position: int, at: str) -> TurnTodo:
    content = (ITEM.title, ITEM.context, ITEM.completion_criteria, ITEM.agent_type)
    return TurnTodo(id, session, turn_id, *content, PlanStatus.PENDING, position, None, at, None, None)


@cache
def _description(position: int) -> str:
    return canonical_json(_todo("", "", "", position, "").creation_data())


class Stream:
    """The events of one stream, as rows."""

    def __init__(self, name: str, session: str) -> None:
        self._name = name
        self._session = session
        self._version = 0
        self._hash = GENESIS

    def event(
        self, at: str, action: str, subject: str, data: str, before: str | None = None, to: str | None = None
    ) -> Row:
        self._version += 1
        fields = (_ACTOR, action, subject, before, to, "bench")
        change = Change(self._name, self._session, *fields, data={})
        self._hash = chain_hash(self._hash, self._version, at, change, data)
        return (self._name, self._version, at, self._session, *fields, data, self._hash)
