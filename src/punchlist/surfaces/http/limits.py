"""The limits of the HTTP servers, all in one place."""

from __future__ import annotations

from typing import Final, NamedTuple

HEADER_SECONDS: Final = 5.0
"""A connection must have sent the headers of its request by then."""
BODY_SECONDS: Final = 30.0
"""The body of a request must have arrived by then."""
IDLE_CONNECTION_SECONDS: Final = 5
"""A connection without a request is closed."""

MAX_CONNECTIONS: Final = 256
"""Above this, the connection that has waited longest without a complete request is closed."""
MAX_ACCEPTED_AT_ONCE: Final = 128
MAX_STREAMS: Final = 100
"""Open streams of MCP clients."""

MAX_WEB_CONNECTIONS: Final = 2_048
"""Connections of `punchlist serve`; most of them are event streams."""
MAX_EVENT_STREAMS: Final = 1_500
MAX_BODY: Final = 1_000_000
"""Bytes of the body of a request to the API."""
REQUESTS_PER_SECOND: Final = 500
"""Requests with one token; more are answered with 429."""
BURST: Final = 1_000
LOGIN_ATTEMPTS: Final = 20
"""Failed logins, and failed signatures, of one address within `LOGIN_SECONDS`."""
LOGIN_SECONDS: Final = 60.0
READY_REQUESTS_PER_SECOND: Final = 20
"""Of one address: each reads the database, without a token."""

SESSION_IDLE_SECONDS: Final = 3600.0
MAX_SESSIONS: Final = 100

LOG_RECORDS: Final = 10
LOG_SECONDS: Final = 60.0
"""At most `LOG_RECORDS` are logged within this time."""


class ConnectionLimits(NamedTuple):
    connections: int
    accepted_at_once: int


def connection_limits(file_descriptors: int, most: int = MAX_CONNECTIONS) -> ConnectionLimits:
    """The limits for a process that may open so many files: accepting must never run out of them."""
    return ConnectionLimits(
        min(most, max(file_descriptors // 4, 1)),
        min(MAX_ACCEPTED_AT_ONCE, max(file_descriptors // 8, 1)),
    )
