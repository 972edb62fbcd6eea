"""Collect metrics and post the readings to the mission chat (M6, M7)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from punchlist.conversations.model import NoticeKind
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.kernel.text import visible
from punchlist.missions.metrics.collectors import CollectedMetric
from punchlist.missions.model import Mission
from punchlist.runs.model import Run


async def collect(run: Run, context: WorkflowContext) -> str:
    mission = await context.mission(run)
    slugs = run.parameters.get("metrics", ())
    lines = await context.step("collect", lambda: collect_metrics(run, context, mission, slugs))
    text = "\n".join(lines) or "There was nothing to collect."
    await context.post("tell", run, mission.conversation_id, NoticeKind.NOTE, f"[run {run.id}]\n{text}")
    return text


async def collect_metrics(run: Run, context: WorkflowContext, mission: Mission, slugs: Sequence[str] = ()) -> list[str]:
    """Run the collectors in a thread and describe the results. Each collector has its own time limit."""
    collecting, scope = context.services.collecting, context.scope(run)
    collected = await asyncio.to_thread(collecting.collect, scope, mission.slug, slugs, once=run.id)
    return [_describe(mission, one) for one in collected]


def _describe(mission: Mission, collected: CollectedMetric) -> str:
    metric, name = collected.metric, visible(collected.metric.name)
    if collected.error is None:
        return f"{name} is {collected.value:g}{metric.unit and f' {visible(metric.unit)}'}."
    if metric.collector_type == "manual":
        command = f"punchlist mission metric record {mission.slug} {metric.slug} VALUE"
        return f"{name} may have changed: record it with `{command}`."
    return f"{name} could not be collected: {visible(collected.error)}"
