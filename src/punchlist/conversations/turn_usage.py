"""What an open turn has used so far. The caller owns the transaction.

The owner of a turn reports its usage when the turn ends. Until then, the tokens come from its status and the time from
its calls.
"""

from __future__ import annotations

from typing import NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import StoredTurn
from punchlist.conversations.status_repository import call_intervals, find_status
from punchlist.kernel.clock import parse_timestamp
from punchlist.storage.store import Transaction


class UsageSoFar(NamedTuple):
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    """During which a call to a model or a tool ran."""

    def plus(self, other: UsageSoFar) -> UsageSoFar:
        return UsageSoFar._make(had + more for had, more in zip(self, other, strict=True))


def usage_so_far(tx: Transaction, turn: StoredTurn) -> UsageSoFar:
    """Of an open turn and its workers; nothing if it has ended."""
    return usage_of(tx, turn) if turn.open else UsageSoFar()


def usage_of(tx: Transaction, turn: StoredTurn) -> UsageSoFar:
    """Of a turn and its workers, from its status and its calls."""
    status = find_status(tx, turn.id)
    turns = conversation_repository.with_child_turns(tx, turn)
    seconds = _busy_seconds([each for one in turns for each in call_intervals(tx, one.id)], tx.now())
    if status is None:
        return UsageSoFar(seconds=seconds)
    return UsageSoFar(status.input_tokens, status.output_tokens, status.cost or 0.0, seconds)


def _busy_seconds(intervals: list[tuple[str, str | None]], now: str) -> float:
    """The time that the intervals cover together. Calls that run end now."""
    total = last = 0.0
    for start, end in sorted((start, end or now) for start, end in intervals):
        begin, until = parse_timestamp(start).timestamp(), parse_timestamp(end).timestamp()
        total += max(until - max(begin, last), 0.0)
        last = max(last, until)
    return total
