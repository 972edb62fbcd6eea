"""Errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from punchlist.errors import InvalidInput, PunchlistError
from punchlist.kernel.text import visible_block

STATUS: Final = {
    "invalid_input": 422,
    "not_found": 404,
    "not_allowed": 403,
    "illegal_transition": 409,
    "check_failed": 409,
    "conflict": 409,
    "changed": 412,
    "precondition_required": 428,
    "key_reused": 422,
    "config": 409,
    "turn_not_started": 409,
    "missing_extra": 501,
    "store_unavailable": 503,
    "store_busy": 503,
}
"""HTTP status of the codes of `errors.py`; 500 for all others."""
TITLES: Final = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    408: "Request timeout",
    409: "Conflict",
    412: "Changed since it was read",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid input",
    428: "Precondition required",
    429: "Too many requests",
    500: "Internal error",
    501: "Not installed",
    503: "Not available",
}


class ChangedSinceRead(PunchlistError):
    """If-Match names another version than the current one."""

    code = "changed"


def problem(
    status: int,
    detail: str,
    *,
    code: str | None = None,
    problems: list[str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    title = TITLES.get(status, "Error")
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": visible_block(detail),
        # The titles of 404, 409 and 422 give the codes of `errors.py`.
        "code": code or title.lower().replace(" ", "_"),
    }
    if problems:
        content["problems"] = [visible_block(each) for each in problems]
    return Response(json.dumps(content), status, dict(headers or {}), media_type="application/problem+json")


def error_problem(error: PunchlistError) -> Response:
    status = STATUS.get(error.code, 500)
    problems = error.problems if isinstance(error, InvalidInput) else None
    headers = {"Retry-After": "5"} if status == 503 else None
    return problem(status, str(error), code=error.code, problems=problems, headers=headers)
