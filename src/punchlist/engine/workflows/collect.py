"""Metrics are collected, and the mission chat is told what came (M6, M7)."""

from __future__ import annotations

import asyncio
from functools import partial

from punchlist.conversations.model import NoticeKind
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.kernel.text import visible
from punchlist.missions.metrics.collection import CollectedMetric
from punchlist.missions.model import Mission
from punchlist.runs.model import Run


async def collect(run: Run, shop: WorkflowContext) -> str:
    mission = await shop.aside(shop.mission, run)

    async def each() -> list[str]:
        collecting, slugs = shop.premises.collecting, run.parameters.get("metrics", ())
        come = partial(collecting.run, shop.scope(run), mission.slug, slugs, once=run.id)
        return told(mission, await asyncio.to_thread(come))

    lines = await shop.step("collect", each)
    text = "\n".join(lines) or "There was nothing to collect."
    await shop.post("tell", run, mission.conversation_id, NoticeKind.NOTE, f"[run {run.id}]\n{text}")
    return text


def told(mission: Mission, collected: list[CollectedMetric]) -> list[str]:
    lines = []
    for one in collected:
        metric = one.metric
        if one.error is None:
            lines.append(f"{visible(metric.name)} is {one.value:g}{metric.unit and f' {visible(metric.unit)}'}.")
        elif metric.how.get("type", "manual") == "manual":
            command = f"punchlist metric record {mission.slug} {metric.slug} VALUE"
            lines.append(f"{visible(metric.name)} may have changed: record it with `{command}`.")
        else:
            lines.append(f"{visible(metric.name)} could not be collected: {visible(one.error)}")
    return lines
