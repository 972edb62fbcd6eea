"""Events: one value per change, chained so that a changed past shows.

Each list is a stream; its events are numbered from 1. An event's hash covers the hash before it,
so no event can be altered, dropped or moved without breaking every later one in its stream. The
chain proves order and content to whoever holds a hash they trust; it does not stop somebody with
write access from recomputing a whole stream, which is why `punchlist db check` also replays the
events and compares the outcome with the rows.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

GENESIS: Final = "0" * 64
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Change:
    """What a service says happened; the event log adds when, number and hash."""

    stream: str
    conversation_id: str
    actor: str
    action: str
    subject: str
    from_status: str | None
    to_status: str | None
    reason: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """A change as it is stored."""

    seq: int
    stream: str
    version: int
    at: str
    conversation_id: str
    actor: str
    action: str
    subject: str
    from_status: str | None
    to_status: str | None
    reason: str
    data: str
    hash: str

    def payload(self) -> Any:
        return json.loads(self.data)


def canonical(data: dict[str, Any]) -> str:
    """JSON that is the same text for the same value, since its hash is kept."""
    return _ENCODER.encode(data)


def chain_hash(previous: str, version: int, at: str, change: Change, data: str) -> str:
    # A JSON array, so that no two lists of parts give the same text.
    parts = [
        previous,
        change.stream,
        version,
        at,
        change.conversation_id,
        change.actor,
        change.action,
        change.subject,
        change.from_status,
        change.to_status,
        change.reason,
        data,
    ]
    return hashlib.sha256(_ENCODER.encode(parts).encode()).hexdigest()
