"""Rebuilds escalations from events and compares them with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from punchlist.kernel.events import Event
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.lifecycle import EscalationAction
from punchlist.missions.model import Escalation
from punchlist.storage.store import Transaction

_EMPTY: Final[dict[str, Any]] = dict.fromkeys(Escalation._fields)
_ACTIONS: Final = frozenset(EscalationAction)


def replay(events: Sequence[Event]) -> dict[str, Escalation]:
    """The escalations by id."""
    found: dict[str, Escalation] = {}
    for event in events:
        if event.action not in _ACTIONS:
            continue
        data = event.payload()
        values = {name: data[name] for name in Escalation._fields if name in data}
        if creates_escalation(event):
            found[event.subject] = Escalation(**{**_EMPTY, **values})
        elif event.subject in found:
            found[event.subject] = found[event.subject]._replace(**{**values, "status": event.to_status or ""})
    return found


def creates_escalation(event: Event) -> bool:
    """Whether an event inserted a row into `escalations`."""
    return event.action == EscalationAction.ASK


def compare(tx: Transaction, mission_id: str, events: Sequence[Event]) -> Iterator[str]:
    """One line per escalation whose row differs from its events."""
    expected = replay(events)
    found = {escalation.id: escalation for escalation in escalation_repository.all_in_mission(tx, mission_id)}
    for id in expected | found:
        if expected.get(id) != found.get(id):
            yield f"mission:{mission_id}: escalation {id} differs from its events"
