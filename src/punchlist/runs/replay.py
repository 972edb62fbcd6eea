"""Rebuild a run from its events and compare it with the stored row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from punchlist.kernel.events import Event
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import RunAction
from punchlist.runs.model import Run, from_row
from punchlist.storage.store import Transaction


def replay(events: Sequence[Event]) -> Run | None:
    run: Run | None = None
    for event in events:
        data = event.payload()
        if event.action == RunAction.QUEUE:
            run = Run(**data)
        elif run is not None:
            run = run._replace(**data)
    return from_row(tuple(run)) if run is not None else None


def compare(tx: Transaction, run_id: str, events: Sequence[Event]) -> Iterator[str]:
    if replay(events) != run_repository.find(tx, run_id):
        yield f"run:{run_id}: the stored row differs from its events"
