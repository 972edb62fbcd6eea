"""Series of a mission by day: cumulative flow, throughput, cycle time, spend and ends of turns.

The days are those of the mission's time zone, as for its budgets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from statistics import median, quantiles
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from punchlist.agent.continuation import Reason
from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions.changes import event_stream, find_mission
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.model import Mission
from punchlist.missions.planning.cadence import time_zone
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.storage.store import Store
from punchlist.views import activity_repository

DEFAULT_DAYS: Final = 30
MAX_DAYS: Final = 366
_HOUR: Final = "2026-02-21T09"
_MINUTE: Final = "2026-02-21T09:00"
_MIDNIGHT: Final = "0000-00-00T00:00:00.000000Z"
MAX_CYCLE_TIMES: Final = 1_000
"""The newest completed todos that cycle times are computed from."""


class FlowDay(NamedTuple):
    """How many todos were in each status at the end of a day."""

    day: str
    counts: dict[str, int]


class ThroughputDay(NamedTuple):
    """How many todos of a pillar ended on a day."""

    day: str
    pillar: str
    completed: int
    cancelled: int


class CycleTimes(NamedTuple):
    """Seconds from the start to the completion of todos; None without completed todos."""

    todos: int
    median_seconds: float | None
    p85_seconds: float | None


class Cycle(NamedTuple):
    """A completed todo: the day of its completion, and the seconds since its start."""

    day: str
    pillar: str
    seconds: float


class TurnsDay(NamedTuple):
    """How many turns ended on a day with a reason."""

    day: str
    reason: str
    turns: int


class SpendDay(NamedTuple):
    """What was used on a day. Work of the Lead has no pillar, except reviews of todos."""

    day: str
    pillar: str | None
    cost: float
    input_tokens: int
    output_tokens: int
    requests: int
    """To models."""


@dataclass(frozen=True, slots=True)
class MissionSeries:
    since: str
    """The first day."""
    timezone: str
    flow: Sequence[FlowDay]
    throughput: Sequence[ThroughputDay]
    cycle_times: CycleTimes
    cycles: Sequence[Cycle]
    """Newest first, at most `MAX_CYCLE_TIMES`."""
    spend: Sequence[SpendDay]
    turns: Sequence[TurnsDay]

    @property
    def finish_rate(self) -> float | None:
        """The share of the ended turns that ended as completed; those that wait go on later and do not count."""
        ended = sum(each.turns for each in self.turns if each.reason != Reason.WAITING)
        completed = sum(each.turns for each in self.turns if each.reason == Reason.COMPLETED)
        return completed / ended if ended else None

    def as_json(self) -> dict[str, Any]:
        return {
            "since": self.since,
            "timezone": self.timezone,
            "flow": [{"day": each.day, **each.counts} for each in self.flow],
            "throughput": [camel_json(each) for each in self.throughput],
            "cycleTimes": camel_json(self.cycle_times),
            "cycles": [camel_json(each) for each in self.cycles],
            "spend": [camel_json(each) for each in self.spend],
            "turns": [camel_json(each) for each in self.turns],
            "finishRate": self.finish_rate,
        }


@dataclass(frozen=True, slots=True)
class _Calendar:
    """The local days of a period."""

    zone: ZoneInfo
    today: date
    first: str
    since: str
    """When the first day began."""
    length: int
    """How many characters of a time tell its local day."""

    @classmethod
    def of(cls, mission: Mission, now: datetime, days: int) -> _Calendar:
        zone = time_zone(cadence_of(mission).timezone)
        today = now.astimezone(zone).date()
        first = today - timedelta(days=days - 1)
        begin = datetime.combine(first, time(), zone)
        offsets = {begin.utcoffset(), now.astimezone(zone).utcoffset()}
        # An hour belongs to one day, unless the zone differs from UTC by half or quarter hours.
        hours = all(offset is not None and not offset % timedelta(hours=1) for offset in offsets)
        return cls(zone, today, first.isoformat(), timestamp(begin), len(_HOUR) if hours else len(_MINUTE))

    def day(self, at: str) -> str:
        """Of a time, or of its beginning."""
        whole = f"{at}{_MIDNIGHT[len(at) :]}"
        return parse_timestamp(whole).astimezone(self.zone).date().isoformat()

    def in_days(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Rows with a time and a count, added up by day."""
        found = Counter[tuple[Any, ...]]()
        days = {at: self.day(at) for at in {row[0] for row in rows}}
        for at, *key, number in rows:
            found[(days[at], *key)] += number
        return [(*key, number) for key, number in found.items()]


def read_series(store: Store, mission_slug: str, *, days: int = DEFAULT_DAYS) -> MissionSeries:
    """The last days, today included."""
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"days: must be from 1 to {MAX_DAYS}")
    with store.read() as tx:
        mission = find_mission(tx, mission_slug)
        calendar = _Calendar.of(mission, parse_timestamp(tx.now()), days)
        since, period = calendar.first, {"mission_id": mission.id, "since": calendar.since}
        by_time = {"since": calendar.since, "length": calendar.length}
        slugs = dict(activity_repository.pillar_slugs(tx, mission.id))
        counts = dict(activity_repository.count_by_status(tx, mission.id))
        steps = activity_repository.steps_by_time(tx, stream=event_stream(mission.id), **by_time)
        ended = activity_repository.ended_by_time(tx, mission_id=mission.id, **by_time)
        times = activity_repository.work_times(tx, **period, most=MAX_CYCLE_TIMES)
        spend = activity_repository.spend_by_day(tx, mission_id=mission.id, day=since)
        chats = activity_repository.chats_of_mission(tx, mission.id)
        turns = [
            row for chat in chats for row in activity_repository.turns_by_time(tx, conversation_id=chat, **by_time)
        ]
    return MissionSeries(
        since,
        str(calendar.zone),
        _flow(counts, calendar.in_days(steps), calendar.today, days),
        _throughput(calendar.in_days(ended), slugs),
        _cycle_times(times),
        [Cycle(calendar.day(ended), slugs[pillar_id], _seconds(started, ended)) for pillar_id, started, ended in times],
        sorted(
            (_spend(row[0], slugs.get(row[1]), *row[2:]) for row in spend),
            key=lambda each: (each.day, each.pillar or ""),
        ),
        _turns(calendar.in_days(turns)),
    )


def _spend(day: str, pillar: str | None, cost: float, *counts: int) -> SpendDay:
    # PostgreSQL returns sums as decimals.
    return SpendDay(day, pillar, float(cost), *map(int, counts))


def _flow(
    counts: dict[str, int], steps: Sequence[tuple[str, str | None, str, int]], today: date, days: int
) -> list[FlowDay]:
    """Counted back from the current counts, so that only the changes of the period are read."""
    current = {status.value: counts.get(status, 0) for status in TodoStatus}
    flow = []
    for back in range(days):
        day = (today - timedelta(days=back)).isoformat()
        flow.append(FlowDay(day, dict(current)))
        for changed_on, before, after, number in steps:
            if changed_on == day:
                current[after] -= number
                if before is not None:
                    current[before] += number
    return flow[::-1]


def _throughput(ended: Sequence[tuple[str, str, str, int]], slugs: dict[str, str]) -> list[ThroughputDay]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for day, pillar_id, status, number in ended:
        found.setdefault((day, slugs[pillar_id]), {})[status] = number
    return [
        ThroughputDay(day, pillar, number.get(TodoStatus.COMPLETED, 0), number.get(TodoStatus.CANCELLED, 0))
        for (day, pillar), number in sorted(found.items())
    ]


def _turns(rows: Sequence[tuple[str, str, int]]) -> list[TurnsDay]:
    found = Counter[tuple[str, str]]()
    for day, reason, number in rows:
        # The explanation follows the name of the reason.
        found[day, reason.partition(":")[0]] += number
    return [TurnsDay(day, reason, number) for (day, reason), number in sorted(found.items())]


def _seconds(started: str, ended: str) -> float:
    return (parse_timestamp(ended) - parse_timestamp(started)).total_seconds()


def _cycle_times(times: Sequence[tuple[str, str, str]]) -> CycleTimes:
    seconds = [_seconds(started, ended) for _, started, ended in times]
    if not seconds:
        return CycleTimes(0, None, None)
    high = quantiles(seconds, n=20, method="inclusive")[16] if len(seconds) > 1 else seconds[0]
    return CycleTimes(len(seconds), median(seconds), high)
