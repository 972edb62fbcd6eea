"""JSON without blanks and with its keys in order, many times for every change.

`JSONEncoder.encode` makes a new encoder of the C library for each value, which costs more than to
encode a small one. Where there is such an encoder it is made once here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder
from typing import Any

Encode = Callable[[Any], str]


def compact_encoder(
    *, ensure_ascii: bool = True, default: Callable[[Any], Any] | None = None, sort_keys: bool = True
) -> Encode:
    plain = json.JSONEncoder(ensure_ascii=ensure_ascii, sort_keys=sort_keys, separators=(",", ":"), default=default)
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    written = encoder.encode_basestring_ascii if ensure_ascii else encoder.encode_basestring
    pieces = make(None, plain.default, written, None, ":", ",", sort_keys, False, True)
    join = "".join
    return lambda value: join(pieces(value, 0))
