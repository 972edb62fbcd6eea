"""Deadlines: a day, which ends in the mission's time zone, or a moment."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import timestamp
from punchlist.kernel.text import excerpt, json_type
from punchlist.missions.model import Escalation, MissionTodo
from punchlist.missions.planning.cadence import time_zone

FIRST_YEAR: Final = 1900
LAST_YEAR: Final = 9998
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)
_ZONE: Final = re.compile(r"Z|[+-]\d\d:?\d\d", re.ASCII)
_WRITE: Final = "Write a day such as 2026-02-21, or a time with a zone such as 2026-02-21T17:00:00Z"


class Deadline(NamedTuple):
    stored: str
    """A day as it was given, or a moment in UTC."""
    passed: bool


class OverdueReport(NamedTuple):
    """The result of processing a mission's deadlines. The first two fields describe the state, the others the actions:
    a second pass at the same moment finds the same state and takes no action."""

    overdue: tuple[MissionTodo, ...] = ()
    """Active todos past their deadline."""
    stale: tuple[MissionTodo, ...] = ()
    """Backlog todos that have not changed for `staleBacklogAfterDays`."""
    demoted: tuple[MissionTodo, ...] = ()
    cancelled: tuple[MissionTodo, ...] = ()
    warned: tuple[MissionTodo, ...] = ()
    """Todos in progress whose owners were warned."""
    escalated: tuple[Escalation, ...] = ()
    reminded: tuple[Escalation, ...] = ()
    pruned: tuple[MissionTodo, ...] = ()
    """Stale todos that were cancelled."""

    @property
    def has_actions(self) -> bool:
        return any(self[2:])


def parse_deadline(text: object, zone: str, now: datetime) -> Deadline:
    """`zone` is the mission's time zone."""
    stored = _normalize(text)
    return Deadline(stored, is_overdue(stored, zone, now))


def parse_future_deadline(text: object, zone: str, now: datetime) -> str:
    """As `parse_deadline`, but a deadline in the past is refused."""
    deadline = parse_deadline(text, zone, now)
    if deadline.passed:
        raise InvalidInput(f"deadline: {deadline.stored} has already passed; give one in the future.")
    return deadline.stored


def due_at(stored: str, zone: str) -> datetime:
    """The moment from which a todo with this deadline is overdue."""
    if not _DAY.fullmatch(stored):
        return datetime.fromisoformat(stored)
    next_day = date.fromisoformat(stored) + timedelta(days=1)
    return datetime.combine(next_day, time(), time_zone(zone)).astimezone(UTC)


def is_overdue(stored: str | None, zone: str, now: datetime) -> bool:
    return stored is not None and due_at(stored, zone) <= now


def _normalize(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"deadline: must be text, got {json_type(text)}. {_WRITE}.")
    normalized = text.strip().upper()
    shown = excerpt(text.strip())
    try:
        if _DAY.fullmatch(normalized):
            year, stored = date.fromisoformat(normalized).year, normalized
        elif (at := _TIME.match(normalized)) and _ZONE.fullmatch(normalized, at.end()):
            moment = datetime.fromisoformat(normalized)
            year, stored = moment.year, timestamp(moment)
        elif at and at.end() == len(normalized):
            raise InvalidInput(f"deadline: {shown!r} has a time but no zone. {_WRITE}.")
        else:
            raise InvalidInput(f"deadline: {shown!r} is not a date. {_WRITE}.")
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"deadline: {shown!r} does not exist in the calendar ({error}). {_WRITE}.") from None
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidInput(f"deadline: {shown!r} is outside the years {FIRST_YEAR} to {LAST_YEAR}. {_WRITE}.")
    return stored
