"""A mission on one page: board counts, health, plots of its metrics, spend, directives, recommendations and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from punchlist.missions.directives.model import Directive
from punchlist.missions.directives.service import Directives
from punchlist.missions.recommendations.service import Recommendations, RecommendationView
from punchlist.missions.usage import MissionUsageService, RunUsage
from punchlist.runs.model import Run
from punchlist.storage.store import Store
from punchlist.views.board import BoardFilter, MissionBoard, read_board
from punchlist.views.health import MissionHealth, read_health
from punchlist.views.metrics import MetricPlot, read_newest
from punchlist.views.runs import read_runs

READINGS: Final = 1_000
"""The newest readings of each metric that are plotted."""
POINTS: Final = 120
RUNS: Final = 8


@dataclass(frozen=True, slots=True)
class MissionOverview:
    board: MissionBoard
    """With the counts of all todos and at most one card."""
    health: MissionHealth
    plots: Mapping[str, MetricPlot]
    """By the slug of the metric."""
    usage: Mapping[str | None, RunUsage]
    """By pillar id. The Lead's own runs have none."""
    directives: Sequence[Directive]
    """Those that hold."""
    recommendations: Sequence[RecommendationView]
    """Open ones."""
    runs: Sequence[Run]
    """The newest ones."""

    @property
    def total(self) -> RunUsage:
        return reduce(RunUsage.plus, self.usage.values(), RunUsage())


def read_overview(store: Store, slug: str) -> MissionOverview:
    board = read_board(store, slug, BoardFilter(), limit=1)
    [health] = read_health(store, slug).missions
    return MissionOverview(
        board,
        health,
        read_newest(store, [view.metric for view in board.metrics], readings=READINGS, points=POINTS),
        MissionUsageService(store).pillars(board.mission.id),
        Directives(store).list(slug),
        Recommendations(store).list(slug),
        read_runs(store, mission=slug, limit=RUNS).runs,
    )
