"""Collects the metrics of a mission and records readings and failures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from punchlist.conversations.model import Scope
from punchlist.kernel.events import canonical_json
from punchlist.missions.config.model import MissionConfig
from punchlist.missions.config.trust import COLLECTORS_NEEDING_TRUST, IsTrusted, trusted_collector, trusted_config
from punchlist.missions.metrics.collectors import CollectorError, collect
from punchlist.missions.metrics.service import MANUAL, Metrics
from punchlist.missions.model import Metric, Mission


@dataclass(frozen=True, slots=True)
class CollectedMetric:
    """The value of one metric, or the error."""

    metric: Metric
    value: float | None = None
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"metric": self.metric.slug, "value": self.value, "error": self.error}


@dataclass(frozen=True, slots=True)
class MetricCollection:
    """Runs the collectors of a mission."""

    metrics: Metrics
    workspace: Path
    environment: Mapping[str, str] = field(repr=False)
    is_trusted: IsTrusted
    allow_private: bool = False
    """Whether HTTP collectors may request private addresses."""

    def collect(
        self, scope: Scope, mission_slug: str, slugs: Collection[str] = (), *, once: str | None = None
    ) -> list[CollectedMetric]:
        """Collect the named metrics, or all that are not manual. A failure does not stop the others. `once` is an
        idempotency key: a repeated call with the same key records no second reading."""
        mission, metrics = self.metrics.find_collectable(mission_slug, slugs)
        needs_trust = any(metric.collector_type in COLLECTORS_NEEDING_TRUST for metric in metrics)
        config = trusted_config(mission, self.is_trusted) if needs_trust else None
        return [self._collect(scope, mission, metric, config, once) for metric in metrics]

    def _collect(
        self, scope: Scope, mission: Mission, metric: Metric, config: MissionConfig | None, once: str | None
    ) -> CollectedMetric:
        trusted = trusted_collector(config, metric.slug)
        try:
            value = collect(
                metric if trusted is None else metric._replace(collector=canonical_json(dict(trusted))),
                mission_slug=mission.slug,
                workspace=self.workspace,
                trusted=trusted is not None,
                environment=self.environment,
                allow_private=self.allow_private,
            )
        except CollectorError as error:
            if metric.collector_type != MANUAL:
                self.metrics.record_failure(scope, metric.id, str(error))
            return CollectedMetric(metric, error=str(error))
        self.metrics.record(scope, mission.slug, metric.slug, value, source=metric.collector_type, once=once)
        return CollectedMetric(metric, value)
