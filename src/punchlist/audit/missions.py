"""Compares the rows of missions, runs and claims with their events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.claims import replay as claim_replay
from punchlist.claims import repository as claim_records
from punchlist.kernel.events import Event
from punchlist.missions import replay as mission_replay
from punchlist.missions.todos import replay as todo_replay
from punchlist.runs import replay as run_replay
from punchlist.runs.lifecycle import RunAction
from punchlist.storage.store import Transaction

TABLES: Final = (*mission_replay.TABLES, "mission_todos", "runs", "claims")


def rows_made(kind: str, events: Sequence[Event]) -> Iterator[str]:
    """The tables that the events of a stream add rows to, one name per row."""
    yield from ["claims"] * claim_replay.count_claimed_todos(events)
    if kind == "mission":
        yield from mission_replay.rows_made(events)
        yield from ("mission_todos" for event in events if todo_replay.creates_todo(event))
    if kind == "run":
        yield from ("runs" for event in events if event.action == RunAction.QUEUE)


def compare_mission(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    yield from mission_replay.compare(tx, owner, events)
    yield from todo_replay.compare(tx, owner, events)
    yield from compare_claims(tx, owner, events)


def compare_run(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    yield from run_replay.compare(tx, owner, events)


def compare_claims(tx: Transaction, owner: str, events: Sequence[Event]) -> Iterator[str]:
    """The claims on the todos of a mission or a plan."""
    for todo_id, replayed in claim_replay.replay_claims(events).items():
        if claim_replay.claim_differs(replayed, claim_records.find(tx, todo_id)):
            yield f"{owner}: the claim of todo {todo_id} differs from its events"
