"""Reads the fields of a form."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request


async def read_form(request: Request) -> dict[str, str]:
    """The fields of an urlencoded form; of a repeated field the last value. The gate has limited its size."""
    text = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=1_000))
