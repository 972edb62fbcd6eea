"""The limits of the HTTP server, all in one place."""

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

SESSION_IDLE_SECONDS: Final = 3600.0
MAX_SESSIONS: Final = 100

LOG_RECORDS: Final = 10
LOG_SECONDS: Final = 60.0
"""At most `LOG_RECORDS` are logged within this time."""


class ConnectionLimits(NamedTuple):
    connections: int
    accepted_at_once: int


def connection_limits(file_descriptors: int) -> ConnectionLimits:
    """The limits for a process that may open so many files: accepting must never run out of them."""
    return ConnectionLimits(
        min(MAX_CONNECTIONS, max(file_descriptors // 4, 1)),
        min(MAX_ACCEPTED_AT_ONCE, max(file_descriptors // 8, 1)),
    )
