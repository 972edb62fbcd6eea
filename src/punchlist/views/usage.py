"""Tokens, requests, tool calls and time of a session, by turn (X4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from punchlist.conversations import repository
from punchlist.conversations.model import StoredTurn
from punchlist.kernel.clock import parse_timestamp
from punchlist.storage.store import Store


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """What a turn and its workers have used."""

    turn: StoredTurn
    requests: int
    input_tokens: int
    output_tokens: int
    calls: int
    seconds: float


def session_usage(store: Store, session: str) -> Sequence[TurnUsage]:
    """The turns of a session, oldest first."""
    with store.read() as tx:
        turns = [turn for turn in repository.all_turns(tx, session) if turn.parent_turn_id is None]
        found = []
        for turn in turns:
            family = repository.with_child_turns(tx, turn)
            requests = repository.model_requests(tx, family)
            until = parse_timestamp(turn.ended_at or tx.now())
            found.append(
                TurnUsage(
                    turn,
                    len(requests),
                    sum(request.input_tokens for request in requests),
                    sum(request.output_tokens for request in requests),
                    len(repository.tool_calls(tx, family)),
                    max(0.0, (until - parse_timestamp(turn.started_at)).total_seconds()),
                )
            )
    return found
