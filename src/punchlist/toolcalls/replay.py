"""Tool calls and approvals as their events made them, for `db check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from punchlist.kernel.events import Event
from punchlist.toolcalls.service import RULE_ADDED
from punchlist.toolcalls.stored_call import StoredApproval, StoredCall, digest

_NOT_TOLD: Final = frozenset({"exact", "result"})


def replay_calls(events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """By id, the columns that the trail tells of."""
    told: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.action != RULE_ADDED:
            told.setdefault(event.subject, {}).update({**event.payload(), "status": event.to_status})
    return told


def call_differs(told: dict[str, Any] | None, found: StoredCall | None) -> bool:
    if told is None or found is None:
        return True
    columns = found._asdict()
    if found.result is not None and digest(found.result) != told.get("result_sha256"):
        return True
    return any(columns[name] != told.get(name) for name in columns.keys() - _NOT_TOLD)


def approval_differs(events: Sequence[Event], found: StoredApproval | None) -> bool:
    told: dict[str, Any] = {}
    for event in events:
        told.update({**event.payload(), "status": event.to_status})
    if found is None:
        return True
    # Other arguments that a person gave may hold secrets: the trail has them without.
    columns = found._asdict()
    return any(columns[name] != told.get(name) for name in columns.keys() - {"arguments"})


def replay_rules(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if event.action == RULE_ADDED:
            yield event.payload()["rule"]
