"""When a failed run is retried: a model that is away for an hour delays work by little more than that hour.

The delays grow to ten minutes at most during the first hour. Later they are longer, up to a day in total.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from punchlist.kernel.clock import parse_timestamp
from punchlist.runs.model import RunKind

RETRY_PERIOD: Final = timedelta(days=1)
"""Runs that failed earlier are not retried."""
DELAYS: Final = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, *(10,) * 6, 30, 30, 60, 60, 120, 120, 240, 240, 360)
)
"""The delay before each retry. After the last one, a person or the next cycle continues."""


UNAVAILABLE: Final = "The model is not available. "
"""Begins the reason of a failure that passes. Other failures are for a person, except those of planning."""
_PLANNING: Final = frozenset({RunKind.CYCLE, RunKind.PLAN})


def is_retried(kind: RunKind, why: str, retries: int) -> bool:
    """Whether a run that failed for this reason is tried again without a person."""
    return (kind in _PLANNING or why.startswith(UNAVAILABLE)) and retries < len(DELAYS)


def retry_at(ended_at: str, retries: int) -> datetime | None:
    """When a run that failed at `ended_at` is retried; None if it has had all its retries."""
    return parse_timestamp(ended_at) + DELAYS[retries] if retries < len(DELAYS) else None
