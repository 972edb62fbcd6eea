"""What a mission.json says, as values. `file.py` reads it, `schema.py` describes it to editors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

ACTIVE_LIMIT: Final = 10
BACKLOG_LIMIT: Final = 50
ARCHIVE_AFTER_DAYS: Final = 30
STALE_BACKLOG_AFTER_DAYS: Final = 60
REMINDER_HOURS: Final = 24.0
STALE_METRIC_HOURS: Final = 7 * 24.0
MOST_REVIEWS: Final = 3
STARTS_PER_DAY: Final = 100
COST_PER_DAY: Final = 1_000.0


class StaleBacklog(StrEnum):
    """What becomes of a backlog item that nobody has taken for long."""

    REVIEW = "review"
    CANCEL = "cancel"


class OverduePending(StrEnum):
    """What becomes of a todo that was never started before its deadline."""

    DEMOTE = "demote"
    CANCEL = "cancel"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class TodoPolicy:
    active_limit: int = ACTIVE_LIMIT
    backlog_limit: int = BACKLOG_LIMIT
    archive_after_days: float = ARCHIVE_AFTER_DAYS
    stale_backlog_after_days: float = STALE_BACKLOG_AFTER_DAYS
    stale_backlog: StaleBacklog = StaleBacklog.REVIEW
    overdue_pending: OverduePending = OverduePending.DEMOTE
    reminder_hours: float = REMINDER_HOURS
    most_reviews: int = MOST_REVIEWS
    """How often the Lead may send work back before a person is asked."""
    starts_per_day: int = STARTS_PER_DAY
    """How many todos may be started within a day by anybody but a person: work that makes work comes to an end."""
    cost_per_day: float = COST_PER_DAY
    """Dollars that runs may have cost within a day before nothing more is started but by a person."""


@dataclass(frozen=True, slots=True)
class Cadence:
    cron: str | None = None
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class MetricConfig:
    name: str
    slug: str
    target: float
    direction: str
    unit: str = ""
    warning: float | None = None
    collector: Mapping[str, Any] = field(default_factory=lambda: {"type": "manual"})
    stale_after_hours: float = STALE_METRIC_HOURS


@dataclass(frozen=True, slots=True)
class StrategyConfig:
    description: str
    status: str = "active"


@dataclass(frozen=True, slots=True)
class PillarConfig:
    name: str
    slug: str
    description: str = ""
    metrics: tuple[MetricConfig, ...] = ()
    strategies: tuple[StrategyConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class TodoTemplate:
    """Todos of a kind: what is said of one stands in for what its maker leaves out."""

    slug: str
    title: str = ""
    description: str = ""
    justification: str = ""
    completion_criteria: str = ""
    priority: str | None = None
    check: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class MissionConfig:
    name: str
    slug: str
    description: str = ""
    todo: TodoPolicy = field(default_factory=TodoPolicy)
    cadence: Cadence = field(default_factory=Cadence)
    pillars: tuple[PillarConfig, ...] = ()
    templates: tuple[TodoTemplate, ...] = ()
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Commands by name that a todo's check can refer to: {"command": [..], "timeoutSeconds": 600}."""
