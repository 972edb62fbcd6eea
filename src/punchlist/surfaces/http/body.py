"""Reads the body of a request, with a limit of size and of time."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from punchlist.surfaces.http.auth import HttpRejection
from punchlist.surfaces.http.limits import BODY_SECONDS


async def read_body(request: Request, most: int) -> bytes:
    """The body; reading stops at the size limit."""
    too_long = HttpRejection(413, f"A message must be shorter than {most:,} bytes.", {"Connection": "close"})
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_long
    except TimeoutError:
        reason = f"The body did not arrive within {BODY_SECONDS:g} s."
        raise HttpRejection(408, reason, {"Connection": "close"}) from None
    return bytes(body)
