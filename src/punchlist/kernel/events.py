"""Events: one value per change, linked by a hash chain that reveals changes to the past.

Each list is a stream; its events are numbered from 1. The hash of an event covers the hash before it, so that no event
can be altered, deleted or moved without breaking all later ones in its stream. A plain hash does not stop a writer from
recomputing a whole stream; `storage/chain.py` signs events with a key. `punchlist db check` also replays the events and
compares the result with the rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from json import encoder
from typing import Any, Final, NamedTuple

GENESIS: Final = "0" * 64


def compact_encoder(
    *, ensure_ascii: bool = True, default: Callable[[Any], Any] | None = None, sort_keys: bool = True
) -> Callable[[Any], str]:
    """An encoder of JSON without blanks.

    `JSONEncoder.encode` creates a new C encoder for each value, which takes longer than encoding a small value. This
    one creates it once.
    """
    plain = json.JSONEncoder(ensure_ascii=ensure_ascii, sort_keys=sort_keys, separators=(",", ":"), default=default)
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    encode_string = encoder.encode_basestring_ascii if ensure_ascii else encoder.encode_basestring
    chunks = make(None, plain.default, encode_string, None, ":", ",", sort_keys, False, True)
    join = "".join
    return lambda value: join(chunks(value, 0))


_ENCODE: Final = compact_encoder(ensure_ascii=False)


class Change(NamedTuple):
    """A change as a service reports it; the event log adds time, version and hash. A named tuple for speed."""

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
    """A stored change."""

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


def canonical_json(data: dict[str, Any]) -> str:
    """JSON with one text per value, since its hash is stored."""
    return _ENCODE(data)


def chain_hash(previous: str, version: int, at: str, change: Change, data: str) -> str:
    """The hash of an event without a key."""
    return hashlib.sha256(chain_text(previous, version, at, change, data).encode()).hexdigest()


def chain_text(previous: str, version: int, at: str, change: Change, data: str) -> str:
    """What the hash of an event covers."""
    # Each field is prefixed with its length, so that different events never produce the same bytes.
    from_status = "-" if change.from_status is None else f"{len(change.from_status)}:{change.from_status}"
    to_status = "-" if change.to_status is None else f"{len(change.to_status)}:{change.to_status}"
    return (
        f"{len(previous)}:{previous}{version}@{len(at)}:{at}"
        f"{len(change.stream)}:{change.stream}{len(change.conversation_id)}:{change.conversation_id}"
        f"{len(change.actor)}:{change.actor}{len(change.action)}:{change.action}{len(change.subject)}:{change.subject}"
        f"{from_status}{to_status}{len(change.reason)}:{change.reason}{data}"
    )
