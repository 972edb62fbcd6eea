"""Metrics and their readings, recorded by people and collectors.

A failed collection keeps the readings; they become stale. Readings are ordered by the time at which they were taken: a
reading that is recorded later for an earlier time is history, and changes neither the current value nor its age.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import block_problem, did_you_mean, excerpt, line_problem, visible_block
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite, check_active, find_mission, lock_mission
from punchlist.missions.metrics import repository as metric_repository
from punchlist.missions.metrics import status as metric_status
from punchlist.missions.metrics.repository import PillarMetric
from punchlist.missions.metrics.status import MetricStatus, Trend
from punchlist.missions.model import Metric, MetricReading, Mission, MissionScope
from punchlist.missions.todos.lifecycle import LEADS
from punchlist.runs import service as runs
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Store, Transaction

MANUAL: Final = "manual"
COLLECTOR: Final = "collector"
"""The agent of runs that collect metrics."""
DEFAULT_READINGS: Final = 60
"""How many of the newest readings a view contains by default."""
MAX_NOTE_LENGTH: Final = 2_000
MAX_ERROR_LENGTH: Final = 2_000


class MetricAction(StrEnum):
    RECORD = "record_reading"
    FAIL = "fail_collecting"


@dataclass(frozen=True, slots=True)
class MetricView:
    """A metric with its current status and readings."""

    metric: Metric
    pillar_slug: str
    current: MetricReading | None
    status: MetricStatus
    trend: Trend
    stale: bool
    readings: list[MetricReading]
    """The newest ones, oldest first."""

    @property
    def values(self) -> list[float]:
        return [reading.value for reading in self.readings]

    def as_json(self) -> dict[str, Any]:
        metric = self.metric
        return {
            **camel_json(metric, "slug", "name", "unit", "target", "warning", "direction", "last_error"),
            "lastErrorAt": metric.last_error_at,
            "pillar": self.pillar_slug,
            "collector": metric.collector_type,
            "current": self.current.value if self.current else None,
            "at": self.current.at if self.current else None,
            "status": self.status.value,
            "trend": self.trend.value,
            "stale": self.stale,
            "readings": [camel_json(reading, "value", "at", "source", "note") for reading in self.readings],
        }


_DUPLICATE_WINDOW: Final = 20
"""How many of the newest readings are searched for a repeated one."""


class Metrics:
    def __init__(self, store: Store) -> None:
        self._store = store

    def record(
        self,
        scope: Scope,
        mission_slug: str,
        metric_slug: str,
        value: float,
        *,
        at: datetime | str | None = None,
        source: str = MANUAL,
        note: str = "",
        once: str | None = None,
    ) -> MetricReading:
        """Add a reading. One from a collector clears the last error. `once` is an idempotency key: a
        repeated call with the same key returns the first reading."""
        _check_actor(scope, mission_slug)
        problems = [*_prefixed("note", block_problem(note, max_length=MAX_NOTE_LENGTH))]
        problems += _prefixed("source", line_problem(source, max_length=100))
        try:
            value = metric_status.checked_value(value)
        except InvalidInput as error:
            problems += [f"value: {problem}" for problem in error.problems]
        if problems:
            raise InvalidInput(problems)
        with self._store.write() as tx:
            write = lock_mission(tx, scope, mission_slug)
            mission = write.mission
            metric = _find(tx, mission, metric_slug).metric
            last = metric_repository.last_recorded(tx, metric.id, _DUPLICATE_WINDOW if once else 1)
            own = new_id() if once is None else sha256(f"{once}:{metric.id}".encode()).hexdigest()[:32]
            if (before := next((reading for reading in last if reading.id == own), None)) is not None:
                return before
            reading = MetricReading(
                id=own,
                mission_id=mission.id,
                metric_id=metric.id,
                position=last[0].position + 1 if last else 1,
                value=value,
                at=_parse_taken_at(at, tx.now()),
                source=source.strip(),
                note=note.strip(),
            )
            metric_repository.insert_readings(tx, [reading])
            data = reading._asdict()
            if source != MANUAL and metric.last_error is not None:
                metric_repository.set_error(tx, metric.id, None, None)
                data |= {"last_error": None, "last_error_at": None}
            reason = reading.note or ("recorded manually" if source == MANUAL else f"collected ({reading.source})")
            write.append(MetricAction.RECORD, reading.id, reason, data)
            return reading

    def record_failure(self, scope: Scope, metric_id: str, error: str) -> Metric:
        """Store why a collection failed. The readings stay."""
        with self._store.write() as tx:
            found = mission_repository.metric(tx, metric_id)
            mission = mission_repository.lock_mission(tx, found.mission_id) if found else None
            if found is None or mission is None:
                raise NotFound(f"There is no metric {excerpt(metric_id)!r}.")
            _check_actor(scope, mission.slug)
            check_active(mission)
            error = _clean_error(error)
            metric_repository.set_error(tx, found.id, error, tx.now())
            data = {"metric_id": found.id, "last_error": error, "last_error_at": tx.now()}
            MissionWrite(tx, scope, mission).append(MetricAction.FAIL, found.id, error, data)
            return found._replace(last_error=error, last_error_at=tx.now())

    def views(
        self, mission_slug: str, metric_slug: str | None = None, *, limit: int = DEFAULT_READINGS
    ) -> list[MetricView]:
        """The metrics of a mission in file order, or one of them."""
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug)
            if metric_slug is not None:
                wanted = [_find(tx, mission, metric_slug, archived=True)]
            else:
                wanted = [placed for placed in metric_repository.in_mission(tx, mission.id) if placed.active]
            return [_view(tx, placed, max(limit, metric_status.TREND_READINGS)) for placed in wanted]

    def find_collectable(self, mission_slug: str, slugs: Collection[str] = ()) -> tuple[Mission, list[Metric]]:
        """The mission, and the named metrics, or all that are not manual."""
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug)
            check_active(mission)
            if slugs:
                return mission, [_find(tx, mission, slug).metric for slug in dict.fromkeys(slugs)]
            every = [placed.metric for placed in metric_repository.in_mission(tx, mission.id) if placed.active]
            return mission, [metric for metric in every if metric.collector_type != MANUAL]

    def enqueue_collection(self, scope: Scope, mission_slug: str, slugs: Collection[str] = (), *, reason: str) -> Run:
        """Queue a run that collects metrics. Collectors are commands and requests, so that a worker runs them."""
        mission, metrics = self.find_collectable(mission_slug, slugs)
        with self._store.write() as tx:
            return runs.enqueue(
                tx,
                scope,
                kind=RunKind.COLLECT,
                conversation_id=mission.conversation_id,
                agent=COLLECTOR,
                request={"metrics": [metric.slug for metric in metrics]},
                mission_id=mission.id,
                reason=reason,
            )


def _view(tx: Transaction, placed: PillarMetric, limit: int) -> MetricView:
    metric = placed.metric
    readings = metric_repository.latest_readings(tx, metric.id, limit)
    current = readings[-1] if readings else None
    return MetricView(
        metric,
        placed.pillar_slug,
        current,
        metric_status.status_of(current and current.value, metric.target, metric.warning, metric.direction),
        metric_status.trend([reading.value for reading in readings], metric.direction),
        metric_status.is_stale(current and current.at, metric.stale_after_hours, parse_timestamp(tx.now())),
        readings,
    )


def _find(tx: Transaction, mission: Mission, slug: str, *, archived: bool = False) -> PillarMetric:
    every = metric_repository.in_mission(tx, mission.id)
    found = next((placed for placed in every if placed.metric.slug == slug), None)
    if found is None:
        known = [placed.metric.slug for placed in every if placed.active]
        raise NotFound(
            f"Mission {mission.slug!r} has no metric {excerpt(slug)!r}.{did_you_mean(slug, known)} "
            f"`punchlist mission metric list {mission.slug}` lists them."
        )
    if not (found.active or archived):
        raise IllegalTransition(
            f"Metric {found.metric.slug!r} of mission {mission.slug!r} is archived; its readings can no longer change."
        )
    return found


def _check_actor(scope: Scope, mission_slug: str) -> None:
    if scope.actor.role not in LEADS:
        # The owner does the work, so it must not also measure it.
        raise NotAllowed(f"{scope.actor.role.described} cannot record readings; the Lead, people and collectors can.")
    if isinstance(scope, MissionScope) and scope.mission_slug not in (None, mission_slug):
        raise NotAllowed(f"You act in mission {scope.mission_slug!r}, not in {excerpt(mission_slug)!r}.")


def parse_moment(at: datetime | str, name: str) -> datetime:
    """In UTC. A date means 00:00 UTC; a time needs a zone. `name` is that of the field, for errors."""
    try:
        given = datetime.fromisoformat(at.strip()) if isinstance(at, str) else at
        if given.tzinfo is None and isinstance(at, str) and len(at.strip()) <= len("2026-02-21"):
            given = given.replace(tzinfo=UTC)
        if given.tzinfo is None:
            raise InvalidInput(f"{name}: {excerpt(str(at))!r} needs a zone, such as 2026-02-21T09:00+01:00 or …Z")
        return given.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{name}: {excerpt(str(at))!r} is not a time. Write 2026-02-21, or 2026-02-21T09:00Z with a zone"
        ) from None


def _parse_taken_at(at: datetime | str | None, now: str) -> str:
    """When a reading was taken."""
    if at is None:
        return now
    taken = parse_moment(at, "at")
    if taken > parse_timestamp(now) + metric_status.MAX_CLOCK_SKEW:
        raise InvalidInput(f"at: {excerpt(str(at))} is in the future; it is now {now[:19]}Z")
    return timestamp(taken)


def _clean_error(error: str) -> str:
    """An error may contain arbitrary program output: escape and cut it."""
    text = visible_block(error).strip() or "The collector failed without a message."
    return text if len(text) <= MAX_ERROR_LENGTH else text[: MAX_ERROR_LENGTH - 1] + "…"


def _prefixed(field: str, problem: str | None) -> list[str]:
    return [f"{field}: {problem}"] if problem else []
