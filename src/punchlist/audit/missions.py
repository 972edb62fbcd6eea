"""Compares the rows of missions, runs and claims with their events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.claims import replay as claim_replay
from punchlist.claims import repository as claim_records
from punchlist.kernel.events import Event
from punchlist.missions import replay as mission_replay
from punchlist.missions.escalations import replay as escalation_replay
from punchlist.missions.metrics import replay as metric_replay
from punchlist.missions.metrics.service import MetricAction
from punchlist.missions.todos import replay as todo_replay
from punchlist.runs import replay as run_replay
from punchlist.runs.lifecycle import RunAction
from punchlist.storage.store import Transaction

_MAKES: Final[dict[tuple[str, str], str]] = {
    ("mission", MetricAction.RECORD): "metric_readings",
    ("run", RunAction.QUEUE): "runs",
}
TABLES: Final = (
    *_MAKES.values(),
    "missions",
    "pillars",
    "strategies",
    "metrics",
    "mission_todos",
    "escalations",
    "claims",
)


def rows_made(kind: str, events: Sequence[Event]) -> Iterator[str]:
    """The tables that the events of a stream add rows to, one name per row."""
    yield from ["claims"] * claim_replay.count_claimed_todos(events)
    if kind == "mission":
        yield from mission_replay.rows_made(events)
    for event in events:
        if table := _MAKES.get((kind, event.action)):
            yield table
        if kind == "mission" and todo_replay.creates_todo(event):
            yield "mission_todos"
        if kind == "mission" and escalation_replay.creates_escalation(event):
            yield "escalations"


def compare_mission(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    yield from mission_replay.compare(tx, owner, events)
    yield from todo_replay.compare(tx, owner, events)
    yield from escalation_replay.compare(tx, owner, events)
    yield from compare_claims(tx, owner, events)
    yield from metric_replay.compare(tx, owner, events)


def compare_run(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    yield from run_replay.compare(tx, owner, events)


def compare_claims(tx: Transaction, owner: str, events: Sequence[Event]) -> Iterator[str]:
    """The claims on the todos of a mission or a plan."""
    for todo_id, replayed in claim_replay.replay_claims(events).items():
        if claim_replay.claim_differs(replayed, claim_records.find(tx, todo_id)):
            yield f"{owner}: the claim of todo {todo_id} differs from its events"
