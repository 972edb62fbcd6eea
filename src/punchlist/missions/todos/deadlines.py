"""Deadlines: a day, which is over at its end in the mission's time zone, or a moment."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import timestamp
from punchlist.kernel.text import excerpt, json_type
from punchlist.missions.model import Escalation, MissionTodo
from punchlist.missions.planning.cadence import time_zone as place

FIRST_YEAR: Final = 1900
LAST_YEAR: Final = 9998
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)
_ZONE: Final = re.compile(r"Z|[+-]\d\d:?\d\d", re.ASCII)
_WRITE: Final = "Write a day such as 2026-02-21, or a time with its zone such as 2026-02-21T17:00:00Z"


class Deadline(NamedTuple):
    stored: str
    """A day as it was given, or a moment in UTC."""
    passed: bool


class OverdueReport(NamedTuple):
    """What looking after a mission's deadlines came to. The first two are how things stand, the rest is what was done:
    a second look at the same moment finds the same and does nothing."""

    overdue: tuple[MissionTodo, ...] = ()
    """Active, and past their deadline."""
    stale: tuple[MissionTodo, ...] = ()
    """In the backlog, and not touched for long."""
    demoted: tuple[MissionTodo, ...] = ()
    cancelled: tuple[MissionTodo, ...] = ()
    warned: tuple[MissionTodo, ...] = ()
    """Those whose workers were told."""
    escalated: tuple[Escalation, ...] = ()
    reminded: tuple[Escalation, ...] = ()
    pruned: tuple[MissionTodo, ...] = ()
    """Stale ones that were cancelled."""

    @property
    def has_actions(self) -> bool:
        return any(self[2:])


def parse_deadline(text: object, zone: str, now: datetime) -> Deadline:
    """What somebody wrote as a deadline; `zone` is the mission's."""
    stored = _normalize(text)
    return Deadline(stored, is_overdue(stored, zone, now))


def parse_future_deadline(text: object, zone: str, now: datetime) -> str:
    """As `parse`, of a deadline that is to be kept: one that has passed is refused."""
    deadline = parse_deadline(text, zone, now)
    if deadline.passed:
        raise InvalidInput(f"deadline: {deadline.stored} has passed already; give one in the future.")
    return deadline.stored


def due_at(stored: str, zone: str) -> datetime:
    """The moment from which on a todo with this deadline is overdue."""
    if not _DAY.fullmatch(stored):
        return datetime.fromisoformat(stored)
    next_day = date.fromisoformat(stored) + timedelta(days=1)
    return datetime.combine(next_day, time(), place(zone)).astimezone(UTC)


def is_overdue(stored: str | None, zone: str, now: datetime) -> bool:
    return stored is not None and due_at(stored, zone) <= now


def _normalize(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"deadline: must be text, got {json_type(text)}. {_WRITE}.")
    said = text.strip().upper()
    shown = excerpt(text.strip())
    try:
        if _DAY.fullmatch(said):
            year, stored = date.fromisoformat(said).year, said
        elif (at := _TIME.match(said)) and _ZONE.fullmatch(said, at.end()):
            moment = datetime.fromisoformat(said)
            year, stored = moment.year, timestamp(moment)
        elif at and at.end() == len(said):
            raise InvalidInput(f"deadline: {shown!r} has a time but no zone. {_WRITE}.")
        else:
            raise InvalidInput(f"deadline: {shown!r} is no date. {_WRITE}.")
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"deadline: there is no {shown!r} in the calendar ({error}). {_WRITE}.") from None
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidInput(f"deadline: {shown!r} is not in the years {FIRST_YEAR} to {LAST_YEAR}. {_WRITE}.")
    return stored
