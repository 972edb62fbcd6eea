"""Sessions and traces as a test needs them: what the program only does as part of something larger."""

from __future__ import annotations

from typing import Any

from punchlist.conversations import repository
from punchlist.conversations.model import Conversation, ModelCallRecord, Scope, Trace, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.conversations.turn_writer import TurnWriter
from punchlist.kernel.clock import timestamp
from punchlist.storage.store import Store


def start_session(store: Store, scope: Scope, **values: Any) -> Conversation:
    with store.write() as tx:
        return Conversations(store).ensure(tx, scope, **values)


def newest_sessions(store: Store, limit: int = 50) -> list[Conversation]:
    with store.read() as tx:
        return repository.newest_conversations(tx, limit)


def add_trace(
    store: Store,
    scope: Scope,
    turn_id: str,
    *,
    name: str = "a-model",
    input: str = "",
    output: str = "",
    error: str | None = None,
    started_at: str | None = None,
) -> Trace:
    """Store a model call as the process that works on the turn does."""
    now = timestamp(store.clock())
    turn = TurnScope(scope.conversation_id, scope.actor, turn_id)
    before = {trace.id for trace in traces(store, turn_id)}
    TurnWriter(store, turn).write([], ModelCallRecord(name, input, output, error, started_at or now, now))
    (added,) = [trace for trace in traces(store, turn_id) if trace.id not in before]
    return added


def traces(store: Store, turn_id: str) -> list[Trace]:
    with store.read() as tx:
        turn = repository.find_turn(tx, turn_id)
        found = repository.all_traces(tx, turn.conversation_id) if turn is not None else []
        return [trace for trace in found if trace.turn_id == turn_id]
