"""When a failed cycle or planning run is retried: a busy model delays it by minutes, not until the next cycle."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from punchlist.kernel.clock import parse_timestamp

DELAYS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 15, 30, 60))
"""The delay before each retry. After the last one, a person or the next cycle continues."""


def retry_at(ended_at: str, retries: int) -> datetime | None:
    """When a run that failed at `ended_at` is retried; None if it has had all its retries."""
    return parse_timestamp(ended_at) + DELAYS[retries] if retries < len(DELAYS) else None
