"""Rebuilds tool calls and approvals from their events, for `db check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from punchlist.kernel.events import Event
from punchlist.toolcalls.rule_store import RULE_ADDED, RULE_REVOKED
from punchlist.toolcalls.stored_call import StoredApproval, StoredCall, digest

_NOT_IN_EVENTS: Final = frozenset({"exact", "result"})


def replay_calls(events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """By id, the columns that the events contain."""
    replayed: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.action not in {RULE_ADDED, RULE_REVOKED}:
            replayed.setdefault(event.subject, {}).update({**event.payload(), "status": event.to_status})
    return replayed


def call_differs(replayed: dict[str, Any] | None, stored: StoredCall | None) -> bool:
    if replayed is None or stored is None:
        return True
    columns = stored._asdict()
    if stored.result is not None and digest(stored.result) != replayed.get("result_sha256"):
        return True
    return any(columns[name] != replayed.get(name) for name in columns.keys() - _NOT_IN_EVENTS)


def approval_differs(events: Sequence[Event], stored: StoredApproval | None) -> bool:
    if stored is None:
        return True
    replayed: dict[str, Any] = {}
    for event in events:
        replayed.update({**event.payload(), "status": event.to_status})
    # Arguments that a person changed can contain secrets: events have them redacted.
    columns = stored._asdict()
    return any(columns[name] != replayed.get(name) for name in columns.keys() - {"arguments"})


def replay_rules(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if event.action == RULE_ADDED:
            yield event.payload()["rule"]
