"""Series of a mission by day: cumulative flow, throughput, cycle time, spend and ends of turns. The days are UTC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

from punchlist.agent.continuation import Reason
from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp
from punchlist.missions.changes import event_stream, find_mission
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.storage.store import Store
from punchlist.views import activity_repository

DEFAULT_DAYS: Final = 30
MAX_DAYS: Final = 366
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
    """What the runs used that were queued on a day. Runs of the Lead have no pillar."""

    day: str
    pillar: str | None
    cost: float
    input_tokens: int
    output_tokens: int
    runs: int


@dataclass(frozen=True, slots=True)
class MissionSeries:
    since: str
    """The first day."""
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
            "flow": [{"day": each.day, **each.counts} for each in self.flow],
            "throughput": [camel_json(each) for each in self.throughput],
            "cycleTimes": camel_json(self.cycle_times),
            "cycles": [camel_json(each) for each in self.cycles],
            "spend": [camel_json(each) for each in self.spend],
            "turns": [camel_json(each) for each in self.turns],
            "finishRate": self.finish_rate,
        }


def read_series(store: Store, mission_slug: str, *, days: int = DEFAULT_DAYS) -> MissionSeries:
    """The last days, today included."""
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"days: must be from 1 to {MAX_DAYS}")
    with store.read() as tx:
        mission = find_mission(tx, mission_slug)
        today = parse_timestamp(tx.now()).date()
        since = (today - timedelta(days=days - 1)).isoformat()
        period = {"mission_id": mission.id, "since": since}
        slugs = dict(activity_repository.pillar_slugs(tx, mission.id))
        counts = dict(activity_repository.count_by_status(tx, mission.id))
        steps = activity_repository.steps_by_day(tx, stream=event_stream(mission.id), since=since)
        ended = activity_repository.ended_by_day(tx, **period)
        times = activity_repository.work_times(tx, **period, most=MAX_CYCLE_TIMES)
        spend = activity_repository.spend_by_day(tx, **period)
        chats = activity_repository.chats_of_mission(tx, mission.id)
        turns = [row for chat in chats for row in activity_repository.turns_by_day(tx, chat, since)]
    return MissionSeries(
        since,
        _flow(counts, steps, today, days),
        _throughput(ended, slugs),
        _cycle_times(times),
        [Cycle(ended[:10], slugs[pillar_id], _seconds(started, ended)) for pillar_id, started, ended in times],
        sorted(
            (_spend(row[0], row[1] and slugs.get(row[1]), *row[2:]) for row in spend),
            key=lambda each: (each.day, each.pillar or ""),
        ),
        _turns(turns),
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
