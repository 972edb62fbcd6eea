"""Rebuild the checklist from its events, to compare it with the row."""

from __future__ import annotations

from collections.abc import Sequence

from punchlist.checklist.model import Checklist, items_from_json
from punchlist.kernel.events import Event


def replay_checklist(events: Sequence[Event]) -> Checklist:
    """Every event contains the whole list, so the last one is the state."""
    last = events[-1]
    data = last.payload()
    return Checklist(items_from_json(data["items"]), data["revision"], data["undo_to"], last.at)
