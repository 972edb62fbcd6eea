"""A mission's configuration as JSON: what is stored, exported and compared. `file.py` reads it back."""

from __future__ import annotations

from typing import Any

from punchlist.missions.config.model import (
    Cadence,
    MetricConfig,
    MissionConfig,
    OverduePending,
    PillarConfig,
    StaleBacklog,
    TodoPolicy,
    TodoTemplate,
)
from punchlist.missions.model import Mission


def config_json(config: MissionConfig) -> dict[str, Any]:
    """All of it, also what the file left open, by the names and in the order of the file."""
    return {
        "name": config.name,
        "slug": config.slug,
        "description": config.description,
        "todo": policy_json(config.todo),
        "cadence": cadence_json(config.cadence),
        "pillars": [_pillar_json(pillar) for pillar in config.pillars],
        "templates": [_template_json(template) for template in config.templates],
        "checks": {name: dict(check) for name, check in config.checks.items()},
    }


def policy_json(policy: TodoPolicy) -> dict[str, Any]:
    return {
        "activeTodoLimit": policy.active_limit,
        "backlogTodoLimit": policy.backlog_limit,
        "archiveAfterDays": plain(policy.archive_after_days),
        "staleBacklogAfterDays": plain(policy.stale_backlog_after_days),
        "staleBacklogPolicy": policy.stale_backlog.value,
        "overduePendingPolicy": policy.overdue_pending.value,
        "reminderHours": plain(policy.reminder_hours),
        "maxReviews": policy.most_reviews,
        "maxStartsPerDay": policy.starts_per_day,
        "maxCostPerDay": plain(policy.cost_per_day),
    }


def cadence_json(cadence: Cadence) -> dict[str, Any]:
    return {**({"cron": cadence.cron} if cadence.cron is not None else {}), "timezone": cadence.timezone}


def metric_json(metric: MetricConfig) -> dict[str, Any]:
    return {
        "name": metric.name,
        "slug": metric.slug,
        "unit": metric.unit,
        "target": plain(metric.target),
        **({"warning": plain(metric.warning)} if metric.warning is not None else {}),
        "direction": metric.direction,
        "collector": dict(metric.collector),
        "staleAfterHours": plain(metric.stale_after_hours),
    }


def _pillar_json(pillar: PillarConfig) -> dict[str, Any]:
    return {
        "name": pillar.name,
        "slug": pillar.slug,
        "description": pillar.description,
        "metrics": [metric_json(metric) for metric in pillar.metrics],
        "strategies": [{"description": one.description, "status": one.status} for one in pillar.strategies],
    }


def _template_json(template: TodoTemplate) -> dict[str, Any]:
    told = {
        "slug": template.slug,
        "title": template.title,
        "description": template.description,
        "justification": template.justification,
        "completionCriteria": template.completion_criteria,
        "priority": template.priority,
        "check": dict(template.check) if template.check is not None else None,
    }
    return {name: value for name, value in told.items() if value not in ("", None)}


def plain(number: float) -> float:
    """As people write it: 60, not 60.0."""
    return int(number) if float(number).is_integer() and abs(number) < 2**53 else number


# --- what is asked of a stored one, without reading all of it ---------------------------------------------


def policy_of(mission: Mission) -> TodoPolicy:
    stored = mission.config["todo"]
    return TodoPolicy(
        active_limit=stored["activeTodoLimit"],
        backlog_limit=stored["backlogTodoLimit"],
        archive_after_days=float(stored["archiveAfterDays"]),
        stale_backlog_after_days=float(stored["staleBacklogAfterDays"]),
        stale_backlog=StaleBacklog(stored["staleBacklogPolicy"]),
        overdue_pending=OverduePending(stored["overduePendingPolicy"]),
        reminder_hours=float(stored["reminderHours"]),
        most_reviews=stored["maxReviews"],
        starts_per_day=stored["maxStartsPerDay"],
        cost_per_day=float(stored["maxCostPerDay"]),
    )


def cadence_of(mission: Mission) -> Cadence:
    stored = mission.config["cadence"]
    return Cadence(stored.get("cron"), stored["timezone"])
