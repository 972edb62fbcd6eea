"""Identifiers.

Rows get UUIDv7 ids: unique without coordination, and ordered by time, so that new rows are appended to indexes.
Checklist items get short ids, because a model repeats them in every call.
"""

from __future__ import annotations

import os
import time

_SHORT_ALPHABET = "abcdefghjkmnpqrstuvwxyz"
_PAYLOAD = (1 << 74) - 1
_LOW = (1 << 62) - 1
_STEP = (1 << 40) - 1


class _Last:
    """The newest id of this process: its milliseconds and its 74 other bits."""

    millis = 0
    payload = 0


def new_id() -> str:
    """A UUIDv7 in its usual text form. The ids of a process grow, also within a millisecond.

    Two threads may get ids in either order; the random step keeps them different, also in a forked process.
    """
    millis, random = time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10), "big")
    if millis > _Last.millis:
        payload = random & _PAYLOAD
    else:
        millis, payload = _Last.millis, _Last.payload + 1 + (random & _STEP)
        if payload > _PAYLOAD:
            millis, payload = millis + 1, random & _PAYLOAD
    _Last.millis, _Last.payload = millis, payload
    value = (millis & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | payload >> 62 << 64 | 0x2 << 62 | payload & _LOW
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def short_id() -> str:
    """Six letters: unique within one list, and never mistaken for a position."""
    return "".join(_SHORT_ALPHABET[byte % len(_SHORT_ALPHABET)] for byte in os.urandom(6))
