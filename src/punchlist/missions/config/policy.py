"""Todo limits and cadence of a mission. Other modules read them from the stored configuration on every change, so this
module must not import pydantic."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from punchlist.kernel.camel_json import camel_case, camel_json
from punchlist.missions.config.field_rules import line, number, whole_number
from punchlist.missions.model import Mission
from punchlist.missions.planning.cadence import cron_problem, next_tick, timezone_problem
from punchlist.toolcalls.policy import Mode

MAX_DAYS: Final = 36_500
MIN_HOURS: Final = 0.01
MAX_HOURS: Final = MAX_DAYS * 24
MAX_CADENCE_LENGTH: Final = 200
MAX_TIMEOUT_SECONDS: Final = 3_600.0
MAX_COST: Final = 1_000_000
MAX_TOKENS: Final = 10**12
CHECK_TIMEOUT_SECONDS: Final = 600
"""The default time limit of a check."""


class StaleBacklog(StrEnum):
    """What happens to a backlog todo that has not changed for `stale_backlog_after_days`."""

    REVIEW = "review"
    CANCEL = "cancel"


class OverduePending(StrEnum):
    """What happens to a pending todo whose deadline has passed."""

    DEMOTE = "demote"
    CANCEL = "cancel"
    KEEP = "keep"


PYDANTIC_CONFIG: Final[dict[str, Any]] = {"extra": "forbid", "alias_generator": camel_case}


@dataclass(frozen=True, slots=True)
class TodoPolicy:
    __pydantic_config__: ClassVar[dict[str, Any]] = PYDANTIC_CONFIG

    active_todo_limit: Annotated[int, whole_number("How many todos may be pending or in progress.", 1, 1_000)] = 10
    backlog_todo_limit: Annotated[int, whole_number("How many todos may be in the backlog.", 0, 10_000)] = 50
    archive_after_days: Annotated[float, number("Days until an ended todo is archived.", 0, MAX_DAYS)] = 30
    stale_backlog_after_days: Annotated[float, number("Days until a backlog todo is stale.", 0, MAX_DAYS)] = 60
    stale_backlog_policy: StaleBacklog = StaleBacklog.REVIEW
    overdue_pending_policy: OverduePending = OverduePending.DEMOTE
    reminder_hours: Annotated[
        float, number("Hours between reminders of an unanswered question.", MIN_HOURS, MAX_HOURS)
    ] = 24
    max_reviews: Annotated[
        int, whole_number("How often the Lead may send work back before a person decides.", 0, 100)
    ] = 3
    max_starts_per_day: Annotated[
        int, whole_number("Todos that agents may start per day; this ends work that creates work.", 0, 100_000)
    ] = 100
    max_cost_per_day: Annotated[
        float, number("Dollars per day after which only a person can start todos.", 0, 1_000_000)
    ] = 1_000


@dataclass(frozen=True, slots=True)
class Cadence:
    __pydantic_config__: ClassVar[dict[str, Any]] = PYDANTIC_CONFIG

    cron: Annotated[
        str | None,
        line(
            "When planning cycles run: minute, hour, day of month, month, weekday.",
            MAX_CADENCE_LENGTH,
            check=cron_problem,
        ),
    ] = None
    timezone: Annotated[
        str, line("The time zone of the cadence and of deadlines.", MAX_CADENCE_LENGTH, check=timezone_problem)
    ] = "UTC"


@dataclass(frozen=True, slots=True)
class MissionLimits:
    """What a mission may use. None is no limit."""

    __pydantic_config__: ClassVar[dict[str, Any]] = PYDANTIC_CONFIG

    mode: Mode | None = None
    """The loosest mode of the mission's agents. A worker in a stricter mode keeps its own."""
    cost_per_day: Annotated[
        float | None, number("Dollars for requests to models per day in the mission's time zone.", 0, MAX_COST)
    ] = None
    cost_per_todo: Annotated[float | None, number("Dollars for the work on one todo.", 0, MAX_COST)] = None
    tokens_per_day: Annotated[int | None, whole_number("Tokens per day.", 0, MAX_TOKENS)] = None
    tokens_per_todo: Annotated[int | None, whole_number("Tokens for the work on one todo.", 0, MAX_TOKENS)] = None

    def value_of(self, name: str) -> float | None:
        """By the name in the mission file."""
        values: dict[str, float | None] = camel_json(self)
        return values[name]


_POLICY_KEYS: Final = tuple((field.name, camel_case(field.name)) for field in fields(TodoPolicy))

_LIMIT_KEYS: Final = tuple((field.name, camel_case(field.name)) for field in fields(MissionLimits))


def policy_of(mission: Mission) -> TodoPolicy:
    stored = mission.config["todo"]
    values = {name: stored[key] for name, key in _POLICY_KEYS}
    values["stale_backlog_policy"] = StaleBacklog(values["stale_backlog_policy"])
    values["overdue_pending_policy"] = OverduePending(values["overdue_pending_policy"])
    return TodoPolicy(**values)


def next_cycle(mission: Mission, now: datetime) -> str | None:
    """When the next cycle is due; None without a cadence, and while the mission is paused or archived."""
    cadence = cadence_of(mission)
    if cadence.cron is None or mission.status != "active" or mission.paused_at is not None:
        return None
    return next_tick(cadence.cron, cadence.timezone, now)


def cadence_of(mission: Mission) -> Cadence:
    stored = mission.config["cadence"]
    return Cadence(stored.get("cron"), stored["timezone"])


def limits_of(mission: Mission) -> MissionLimits:
    # Missions that were applied by an earlier version have no limits.
    stored = mission.config.get("limits", {})
    values = {name: stored.get(key) for name, key in _LIMIT_KEYS}
    values["mode"] = Mode(values["mode"]) if values["mode"] is not None else None
    return MissionLimits(**values)
