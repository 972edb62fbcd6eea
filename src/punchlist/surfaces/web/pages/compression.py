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
from starlette.responses import Response

MIN_BYTES: Final = 1_000
_LEVEL: Final = 5


def compressed(request: Request, response: Response) -> Response:
    """The response with its body compressed, if that helps."""
    body = bytes(response.body)
    if len(body) >= MIN_BYTES and accepts_gzip(request):
        response.body = gzip.compress(body, _LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    response.headers.add_vary_header("Accept-Encoding")
    return response


def accepts_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


@cache
def compressed_file(file: Path) -> bytes:
    return gzip.compress(file.read_bytes(), 9, mtime=0)
