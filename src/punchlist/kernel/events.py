"""Events: who changed what. One value per change, linked by a hash chain that reveals changes to the past.

Each list is a stream; its events are numbered from 1. The hash of an event covers the hash before it, so that no event
can be altered, deleted or moved without breaking all later ones in its stream. A plain hash does not stop a writer from
recomputing a whole stream. `punchlist db check` also replays the events and compares the result with the rows.

With a key (`Chain`), the hash is a MAC: a writer without the key can neither rewrite an event nor recompute the chain.
The text is `KEY.AFTER.MAC`. KEY identifies the key. AFTER is the number of the newest event that the writer saw, so
that an event or a whole stream cannot be removed without leaving a gap. The MAC covers AFTER, the hash before it in the
stream, and every field of the event.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from json import encoder
from typing import Any, Final, NamedTuple

GENESIS: Final = "0" * 64
_DIGEST_BYTES: Final = 32
_MARK: Final = "."
_LOGIN: Final = re.compile(r"web-(?:code-)?(.+)-[0-9a-f]{8}")
"""The name of the token of a browser: with the name of the person, and random digits."""


class Role(StrEnum):
    PERSON = "person"
    SUPERVISOR = "supervisor"
    # In a mission: the lead decides and reviews, an owner works for one pillar.
    LEAD = "lead"
    OWNER = "owner"
    WORKER = "worker"
    # Reads and changes nothing.
    VIEWER = "viewer"
    SYSTEM = "system"

    @property
    def described(self) -> str:
        """The role with an article, at the start of a sentence."""
        return f"{'An' if self.value[0] in 'aeiou' else 'A'} {self.value}"


@dataclass(frozen=True, slots=True)
class Actor:
    """Set by the surface that authenticated the caller; never taken from a model's output."""

    role: Role
    name: str

    def __str__(self) -> str:
        return f"{self.role}:{self.name}"

    @property
    def known_name(self) -> str:
        """For texts: of a person in a browser, their name instead of that of the browser's token."""
        found = _LOGIN.fullmatch(self.name) if self.role is Role.PERSON else None
        return found.group(1) if found else self.name


SYSTEM = Actor(Role.SYSTEM, "punchlist")


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


def chain_hash(previous: str, version: int, at: str, change: Change | Event, data: str) -> str:
    """The hash of an event without a key."""
    return hashlib.sha256(chain_text(previous, version, at, change, data).encode()).hexdigest()


def chain_text(previous: str, version: int, at: str, change: Change | Event, data: str) -> str:
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


class EventSignature(NamedTuple):
    """The parts of a signed hash."""

    key_id: str
    after: int


class Anchor(NamedTuple):
    signed_from: int
    """Events from this number on are signed."""
    seq: int
    hash: str
    key_id: str
    signature: str


class Chain:
    """A key, and whether events were appended since the anchor was recorded."""

    __slots__ = ("_key", "due", "id", "pending")

    def __init__(self, key: bytes) -> None:
        # BLAKE2 takes keys of up to 64 bytes; this one is used for nothing else.
        self._key = blake2b(key, person=b"punchlist-events", digest_size=_DIGEST_BYTES).digest()
        self.id = blake2b(self._key, person=b"punchlist-key-id", digest_size=4).hexdigest()
        self.pending = False
        self.due = 0.0

    def sign_event(self, after: int, previous: str, version: int, at: str, change: Change | Event, data: str) -> str:
        text = f"{after}@{chain_text(previous, version, at, change, data)}"
        return f"{self.id}{_MARK}{after}{_MARK}{self._mac(text)}"

    def sign_anchor(self, signed_from: int, seq: int, hash: str) -> Anchor:
        return Anchor(signed_from, seq, hash, self.id, self._mac(f"anchor {signed_from} {seq} {hash}"))

    def has_signed(self, anchor: Anchor) -> bool:
        return anchor == self.sign_anchor(anchor.signed_from, anchor.seq, anchor.hash)

    def _mac(self, text: str) -> str:
        return blake2b(text.encode(), key=self._key, digest_size=_DIGEST_BYTES).hexdigest()


def parse_signature(hash: str) -> EventSignature | None:
    """The parts of a signed hash; None for a plain one."""
    key_id, *rest = hash.split(_MARK)
    if len(rest) != 2 or not rest[0].isdecimal():
        return None
    return EventSignature(key_id, int(rest[0]))
