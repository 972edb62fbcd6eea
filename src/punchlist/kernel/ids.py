"""Identifiers.

Rows get UUIDv7 ids: unique without coordination, and ordered by time, so that new rows are appended to indexes.
Checklist items get short ids, because a model repeats them in every call.
"""

from __future__ import annotations

import os
import time

_SHORT_ALPHABET = "abcdefghjkmnpqrstuvwxyz"


def new_id() -> str:
    """A UUIDv7 in its usual text form."""
    millis = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10), "big")
    value = (millis & 0xFFFF_FFFF_FFFF) << 80 | noise
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def short_id() -> str:
    """Six letters: unique within one list, and never mistaken for a position."""
    return "".join(_SHORT_ALPHABET[byte % len(_SHORT_ALPHABET)] for byte in os.urandom(6))
