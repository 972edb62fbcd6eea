"""One function changes the status of every list's items: lock, advance, guarded UPDATE, event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.contract.front import nothing_changes

from punchlist.conversations import repository
from punchlist.conversations.lifecycle import TURN, TurnAction
from punchlist.conversations.model import Scope, StoredTurn
from punchlist.conversations.service import Conversations, conversation_change, stream
from punchlist.errors import Conflict, IllegalTransition
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.storage.transitions import transition

Guard = Callable[[StoredTurn], Mapping[str, Any] | None]


def end(
    tx: Transaction,
    scope: Scope,
    turn: StoredTurn,
    guard: Callable[[StoredTurn], Mapping[str, Any] | None] | None = None,
) -> StoredTurn:
    return transition(
        tx,
        TURN,
        TurnAction.END,
        scope.actor.role,
        lock=lambda _: turn,
        update=repository.update_turn,
        event=lambda before, after, data: conversation_change(
            scope, TurnAction.END, turn.id, "done", data, from_status=before.status, to_status=after.status
        ),
        changes={"ended_at": tx.now(), "end_reason": "done"},
        guard=guard,
    )


@pytest.fixture
def turn(conversations: Conversations, agent: Scope) -> StoredTurn:
    return conversations.open_turn(agent)


def test_a_transition_writes_the_row_and_its_event(store: Store, agent: Scope, turn: StoredTurn) -> None:
    with store.write() as tx:
        after = end(tx, agent, turn, lambda _: {"note": "from the guard"})
    with store.read() as tx:
        assert repository.find_turn(tx, turn.id) == after
        event = event_log.read_stream(tx, stream(agent.conversation_id))[-1]
    assert (event.action, event.from_status, event.to_status) == ("end_turn", "open", "ended")
    assert event.payload() == {
        "status": "ended",
        "ended_at": after.ended_at,
        "end_reason": "done",
        "note": "from the guard",
    }


def test_the_second_of_two_writers_is_refused(
    store: Store, conversations: Conversations, agent: Scope, turn: StoredTurn
) -> None:
    conversations.end_turn(agent, reason="first")
    with (
        nothing_changes(store),
        pytest.raises(Conflict, match=f"Another writer changed turn '{turn.id}'"),
        store.write() as tx,
    ):
        end(tx, agent, turn)


def test_a_step_that_the_lifecycle_does_not_have_is_refused(
    store: Store, conversations: Conversations, agent: Scope, turn: StoredTurn
) -> None:
    ended = conversations.end_turn(agent, reason="first")
    assert ended is not None
    with nothing_changes(store), pytest.raises(IllegalTransition, match="end_turn"), store.write() as tx:
        end(tx, agent, ended)


def test_a_guard_that_raises_changes_nothing(store: Store, agent: Scope, turn: StoredTurn) -> None:
    def refuse(_: StoredTurn) -> None:
        raise Conflict("not now")

    with nothing_changes(store), pytest.raises(Conflict, match="not now"), store.write() as tx:
        end(tx, agent, turn, refuse)
