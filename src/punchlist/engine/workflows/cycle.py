"""A planning cycle: sweep deadlines, collect metrics, let owners plan their pillars, let the Lead review (M12, M13).

The planning of each pillar is a run of its own in the pillar's chat, so that pillars plan in parallel and each can be
paused or stopped. When all have ended, the Lead reviews across pillars in the mission chat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from punchlist.agent.definitions import LEAD, OWNER
from punchlist.conversations.model import NewMessage, NoticeKind
from punchlist.engine.active_runs import RunStopped
from punchlist.engine.runtime_factory import TurnTask
from punchlist.engine.turns import POLL_INTERVAL
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.kernel.clock import timestamp
from punchlist.kernel.text import visible
from punchlist.missions import repository as mission_repository
from punchlist.missions.chats import quote_verbatim
from punchlist.missions.metrics.collectors import CollectedMetric
from punchlist.missions.model import Mission, Pillar
from punchlist.missions.planning.overdue import OverdueService
from punchlist.missions.planning.skipped_reviews import MAX_RESTING, skipped_review_text, waiting_reviews
from punchlist.missions.todos.deadlines import OverdueReport
from punchlist.runs import repository as run_repository
from punchlist.runs import service as runs
from punchlist.runs.lifecycle import OPEN, RESTING, RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Store, Transaction

PLANNING_GRACE: Final = timedelta(minutes=10)
"""How long a cycle waits for planning that is at rest."""
_SWEPT: Final = ("overdue", "demoted", "cancelled", "warned", "stale", "pruned")


async def cycle(run: Run, context: WorkflowContext) -> str:
    mission = await context.mission(run)
    swept = await context.step("sweep", lambda: _sweep(run, context, mission))
    await context.step("collect", lambda: collect_metrics(run, context, mission))
    run_ids = await context.step("plan", lambda: _enqueue_planning(run, context, mission, swept["stale"]))
    reports = await context.step("planned", lambda: _wait_for_planning(run, context, run_ids))
    if reports is None:
        raise RunStopped

    async def fill() -> str:
        return await context.call(_review_prompt, run, context, mission, reports, swept)

    prompt = await context.step("prompt", fill)
    if prompt:
        report = await _review(run, context, mission, prompt)
    else:
        report = await context.step("skipped", lambda: context.call(_skipped_review, context, mission, reports))
    text = f"[cycle {run.workflow_id}]\n{quote_verbatim(report)}"
    await context.post("report", run, mission.conversation_id, NoticeKind.CYCLE_REPORT, text)
    return report


async def _review(run: Run, context: WorkflowContext, mission: Mission, prompt: str) -> str:
    message = NewMessage("user", NoticeKind.CYCLE_REPORT.value, prompt)
    task = TurnTask("review", context.agent(LEAD), message, mission.conversation_id, mission)
    result = await context.turns.run(run, task)
    return result["text"] or result["why"]


def _skipped_review(context: WorkflowContext, mission: Mission, reports: list[tuple[str, str]]) -> str:
    with context.services.store.read() as tx:
        return skipped_review_text(waiting_reviews(tx, mission.id), reports)


async def plan(run: Run, context: WorkflowContext) -> str:
    """Plan one pillar: its owner gets the planning prompt in the pillar's chat."""
    mission, pillar = await context.mission(run), await context.pillar(run)

    async def fill() -> str:
        now, stale = context.services.store.clock(), run.parameters.get("stale", ())
        return await context.call(context.services.briefing.for_owner, mission, pillar, now, stale)

    message = NewMessage("user", NoticeKind.PLANNING.value, await context.step("prompt", fill))
    task = TurnTask("plan", context.agent(OWNER), message, run.conversation_id, mission, pillar)
    result = await context.turns.run(run, task)
    return result["text"] or f"{result['reason']}: {result['why']}"


async def _sweep(run: Run, context: WorkflowContext, mission: Mission) -> dict[str, list[str]]:
    """Apply the deadline and backlog rules. Returns todo ids, because a step result must be JSON."""
    swept = await context.call(OverdueService(context.services.store).process_mission, context.scope(run), mission.id)
    return {name: [todo.id for todo in getattr(swept, name)] for name in _SWEPT}


def _review_prompt(
    run: Run, context: WorkflowContext, mission: Mission, reports: list[tuple[str, str]], swept: dict[str, list[str]]
) -> str:
    """Empty if as many reviews wait for a person as may."""
    with context.services.store.read() as tx:
        if len(waiting_reviews(tx, mission.id)) >= MAX_RESTING:
            return ""
    get = context.services.mission_todos.get
    todos: dict[str, Any] = {name: tuple(get(id) for id in swept[name]) for name in _SWEPT}
    since = last_cycle(context.services.store, mission, run.id)
    return context.services.briefing.for_lead(mission, dict(reports), OverdueReport(**todos), since)


def last_cycle(store: Store, mission: Mission, but: str = "") -> str:
    """When the last successful cycle with a review was queued: the Lead has seen the reports of the time before."""
    with store.read() as tx:
        found = run_repository.latest_reviewed(tx, mission.id, but)
    return found.created_at if found else mission.created_at


async def _enqueue_planning(run: Run, context: WorkflowContext, mission: Mission, stale: list[str]) -> list[str]:
    def enqueue() -> list[str]:
        pillars = [standing.pillar for standing in context.services.missions.pillars(mission)]
        with context.services.store.write() as tx:
            # Two workers may execute this step for the same run.
            mission_repository.lock_mission(tx, mission.id)
            return [_enqueue_pillar(tx, run, context, mission, pillar, stale) for pillar in pillars]

    return await context.call(enqueue)


def _enqueue_pillar(
    tx: Transaction, run: Run, context: WorkflowContext, mission: Mission, pillar: Pillar, stale: list[str]
) -> str:
    earlier = [
        one
        for one in run_repository.open_in_chat(tx, pillar.conversation_id)
        if one.kind is RunKind.PLAN and one.parameters.get("cycle") != run.id
    ]
    if len(earlier) >= MAX_RESTING or any(one.status not in RESTING for one in earlier):
        return earlier[-1].id
    queued = runs.enqueue(
        tx,
        context.scope(run),
        kind=RunKind.PLAN,
        conversation_id=pillar.conversation_id,
        agent=OWNER,
        request={"cycle": run.id, "pillar": pillar.slug, "stale": stale},
        mission_id=mission.id,
        pillar_id=pillar.id,
        # Derived from the cycle, so that a repeated step creates no second run.
        id=f"{run.id}-{pillar.position}",
    )
    return queued.id


async def _wait_for_planning(run: Run, context: WorkflowContext, ids: list[str]) -> list[tuple[str, str]] | None:
    """The owners' reports when all pillars are planned or at rest for long; None when the cycle is stopped.

    A planning run that waits for a person or is paused delays its cycle by `PLANNING_GRACE` at most.
    """
    while True:
        try:
            now = await context.turns.check_requests(run)
        except RunStopped:
            return None
        planning = await context.call(_find_runs, context, ids)
        unfinished = [one for one in planning if one.status in OPEN]
        since = timestamp(context.services.store.clock() - PLANNING_GRACE)
        if all(is_skipped(one, since) for one in planning):
            if await context.wake(now, "the cycle continues"):
                return [(one.parameters["pillar"], _planning_report(one)) for one in planning]
            await asyncio.sleep(POLL_INTERVAL)
            continue
        at_rest = all(one.status in RESTING for one in unfinished)
        if now.status is RunStatus.WAITING and not at_rest:
            await context.call(context.queue.wake, run.id, "planning continues")
        if now.status is RunStatus.RUNNING and at_rest:
            # Shows people that the cycle needs one of them.
            pillars = ", ".join(one.parameters["pillar"] for one in unfinished)
            await context.call(context.queue.wait, run.id, f"the planning of {pillars}")
        await asyncio.sleep(POLL_INTERVAL)


def is_skipped(run: Run, since: str) -> bool:
    """Whether a cycle goes on without a planning run: it has ended, or it has rested since then."""
    return run.status not in OPEN or (run.status in RESTING and run.changed_at <= since)


def _planning_report(run: Run) -> str:
    if run.status not in OPEN:
        return run.result or f"({run.status}: {run.why})"
    return f"(skipped: its planning run {run.id} is {run.status} since {run.changed_at}: {run.why})"


def _find_runs(context: WorkflowContext, ids: list[str]) -> list[Run]:
    with context.services.store.read() as tx:
        return [run for id in ids if (run := run_repository.find(tx, id)) is not None]


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
