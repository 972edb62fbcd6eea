"""What runs have used: tokens, money, and how long they worked and lasted; of open runs, so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import StoredTurn
from punchlist.conversations.status_repository import find_status
from punchlist.conversations.turn_usage import UsageSoFar, usage_of, usage_so_far
from punchlist.kernel.clock import parse_timestamp
from punchlist.runs.model import Run
from punchlist.storage.store import Store, Transaction


class RunFigures(NamedTuple):
    input_tokens: int
    output_tokens: int
    cost: float
    worked: float
    """Seconds during which an agent worked, without waits."""
    elapsed: float
    """Seconds from the start to the end, or until now."""


def read_figures(store: Store, runs: Iterable[Run]) -> dict[str, RunFigures]:
    """By the ids of the runs."""
    with store.read() as tx:
        return {run.id: _figures(tx, run) for run in runs}


class TurnSummary(NamedTuple):
    figures: RunFigures
    model: str
    """Empty if its agent has reported none, as a third-party agent."""
    mode: str


def read_turn_summary(store: Store, turn: StoredTurn) -> TurnSummary:
    """Of one turn with its workers."""
    with store.read() as tx:
        status = find_status(tx, turn.id)
        elapsed = parse_timestamp(turn.ended_at or tx.now()) - parse_timestamp(turn.started_at)
        figures = RunFigures(*usage_of(tx, turn), max(elapsed.total_seconds(), 0.0))
    return TurnSummary(figures, status.model if status else "", status.mode if status else "")


def _figures(tx: Transaction, run: Run) -> RunFigures:
    used = UsageSoFar(run.input_tokens, run.output_tokens, run.cost, run.seconds)
    if run.ended_at is None and run.turn_id and (turn := conversation_repository.find_turn(tx, run.turn_id)):
        used = used.plus(usage_so_far(tx, turn))
    return RunFigures(*used, _elapsed(run, tx.now()))


def _elapsed(run: Run, now: str) -> float:
    if run.started_at is None:
        return 0.0
    end = parse_timestamp(run.ended_at or now)
    return max((end - parse_timestamp(run.started_at)).total_seconds(), 0.0)
