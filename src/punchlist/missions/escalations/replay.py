"""A mission's escalations as its events tell them, to compare with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from punchlist.kernel.events import Event
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.model import Escalation
from punchlist.missions.todos.lifecycle import EscalationAction
from punchlist.storage.store import Transaction

_NOTHING: Final[dict[str, Any]] = dict.fromkeys(Escalation._fields)
_ACTIONS: Final = frozenset(EscalationAction)


def replay(events: Sequence[Event]) -> dict[str, Escalation]:
    """The escalations by id."""
    found: dict[str, Escalation] = {}
    for event in events:
        if event.action not in _ACTIONS:
            continue
        data = event.payload()
        told = {name: data[name] for name in Escalation._fields if name in data}
        if creates_escalation(event):
            found[event.subject] = Escalation(**{**_NOTHING, **told})
        elif event.subject in found:
            found[event.subject] = found[event.subject]._replace(**{**told, "status": event.to_status or ""})
    return found


def creates_escalation(event: Event) -> bool:
    """Whether an event of a mission puts a row into `escalations`."""
    return event.action == EscalationAction.ASK


def compare(tx: Transaction, mission_id: str, events: Sequence[Event]) -> Iterator[str]:
    """How the rows of a mission's escalations differ from its events."""
    told = replay(events)
    found = {one.id: one for one in escalation_repository.all_in_mission(tx, mission_id)}
    for id in told | found:
        if told.get(id) != found.get(id):
            yield f"mission:{mission_id}: escalation {id} is not what its events made of it"
