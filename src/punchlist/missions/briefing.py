"""The prompts of a cycle, filled with how things stand now (M12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from punchlist.missions import planning
from punchlist.missions.config_json import cadence_of
from punchlist.missions.deadlines import Swept
from punchlist.missions.escalations import Escalations
from punchlist.missions.metrics import Metrics, MetricView
from punchlist.missions.model import Mission, Pillar
from punchlist.missions.planning import MetricLine, Report
from punchlist.missions.service import Missions
from punchlist.missions.todos import MissionTodos


@dataclass(frozen=True, slots=True)
class Briefing:
    missions: Missions
    todos: MissionTodos
    metrics: Metrics
    escalations: Escalations

    def for_owner(self, mission: Mission, pillar: Pillar, now: datetime, stale: Collection[str] = ()) -> str:
        standing = next(one for one in self.missions.standing(mission) if one.pillar.id == pillar.id)
        return planning.planning_prompt(
            pillar,
            self._lines(mission).get(pillar.slug, ()),
            standing.strategies,
            self.todos.list(mission.slug, pillar=pillar.slug).items,
            self.todos.capacity(mission.slug),
            zone=cadence_of(mission).timezone,
            now=now,
            stale=stale,
        )

    def for_lead(self, mission: Mission, reports: Mapping[str, str], swept: Swept) -> str:
        """`reports` are what the owners said, by the slugs of their pillars."""
        lines = self._lines(mission)
        told = [Report(pillar, text, lines.get(pillar, ())) for pillar, text in reports.items()]
        asked = self.escalations.list(mission.slug)
        return planning.lead_review_prompt(mission, told, self.todos.capacity(mission.slug), swept, asked)

    def _lines(self, mission: Mission) -> dict[str, Sequence[MetricLine]]:
        lines: dict[str, Sequence[MetricLine]] = {}
        for view in self.metrics.show(mission.slug):
            lines[view.pillar_slug] = [*lines.get(view.pillar_slug, ()), _line(view)]
        return lines


def _line(view: MetricView) -> MetricLine:
    metric = view.metric
    return MetricLine(
        metric.name,
        view.current.value if view.current else None,
        metric.target,
        metric.unit,
        view.status.value,
        view.trend.value,
        view.stale,
        metric.warning,
        metric.direction,
        metric.slug,
    )
