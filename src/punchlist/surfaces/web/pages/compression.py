"""gzip of pages and static files, for clients that accept it.

Pages contain a CSRF token beside text of the request. An attacker who wants to guess it from lengths must make the
browser send requests with its cookie, which SameSite=Strict prevents.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request

MIN_BYTES: Final = 1_000
_LEVEL: Final = 5


def compressed(body: bytes, gzipped: bool) -> tuple[bytes, dict[str, str]]:
    """The body, compressed if the client accepts it and it helps, with the headers that say so."""
    if not gzipped or len(body) < MIN_BYTES:
        return body, {}
    return gzip.compress(body, _LEVEL, mtime=0), {"Content-Encoding": "gzip"}


def accepts_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


@cache
def compressed_file(file: Path) -> bytes:
    return gzip.compress(file.read_bytes(), 9, mtime=0)
