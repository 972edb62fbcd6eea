"""A planning cycle: deadlines and metrics are looked after, owners plan their pillars, the Lead reviews (M12, M13).

Each pillar is a run of its own in its own chat, so that they plan side by side and each can be paused or
stopped. When all have ended, the Lead looks across them in the mission chat.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from punchlist.agent.definitions import LEAD, OWNER
from punchlist.conversations.model import NewMessage, NoticeKind
from punchlist.engine.active_runs import RunStopped
from punchlist.engine.turns import TurnTask
from punchlist.engine.worker_services import AgentPosition
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.engine.workflows.collect import told
from punchlist.missions import repository as mission_repository
from punchlist.missions.chats.quote import marked
from punchlist.missions.model import Mission, Pillar
from punchlist.missions.todos.deadlines import OverdueReport
from punchlist.runs import repository as run_records
from punchlist.runs import service as runs
from punchlist.runs.lifecycle import OPEN, ControlRequest, RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Store, Transaction

INTERVAL: Final = 0.2
_SWEPT: Final = ("overdue", "demoted", "cancelled", "warned", "stale", "pruned")


async def cycle(run: Run, shop: WorkflowContext) -> str:
    mission = await shop.aside(shop.mission, run)
    swept = await shop.step("sweep", lambda: _sweep(run, shop, mission))
    await shop.step("collect", lambda: _collect(run, shop, mission))
    planned = await shop.step("plan", lambda: _plan(run, shop, mission, swept["stale"]))
    reports = await shop.step("planned", lambda: _planned(run, shop, planned))
    if reports is None:
        raise RunStopped

    async def fill() -> str:
        return await shop.aside(_for_lead, run, shop, mission, reports, swept)

    prompt = await shop.step("prompt", fill)
    line = NewMessage("user", NoticeKind.CYCLE_REPORT.value, prompt)
    came = await shop.turns.take(
        run, TurnTask("review", AgentPosition(mission.conversation_id, mission), shop.agent(LEAD), line)
    )
    await shop.post(
        "report",
        run,
        mission.conversation_id,
        NoticeKind.CYCLE_REPORT,
        f"[cycle {run.workflow_id}]\n{marked(came['text'] or came['why'])}",
    )
    return came["text"] or came["why"]


async def plan(run: Run, shop: WorkflowContext) -> str:
    """One pillar: its owner is given the planning prompt in the pillar's chat."""
    mission, pillar = await shop.aside(shop.mission, run), await shop.aside(shop.pillar, run)

    async def fill() -> str:
        now, stale = shop.premises.store.clock(), run.parameters.get("stale", ())
        return await shop.aside(shop.premises.briefing.for_owner, mission, pillar, now, stale)

    text = await shop.step("prompt", fill)
    line = NewMessage("user", NoticeKind.PLANNING.value, text)
    came = await shop.turns.take(
        run, TurnTask("plan", AgentPosition(run.conversation_id, mission, pillar), shop.agent(OWNER), line)
    )
    return came["text"] or f"{came['reason']}: {came['why']}"


async def _sweep(run: Run, shop: WorkflowContext, mission: Mission) -> dict[str, list[str]]:
    """What was done about deadlines and the backlog; ids, since that is what a step can keep."""
    swept = await shop.aside(shop.premises.deadlines.sweep, shop.scope(run), mission.id)
    return {name: [one.id for one in getattr(swept, name)] for name in _SWEPT}


def _for_lead(
    run: Run, shop: WorkflowContext, mission: Mission, reports: list[tuple[str, str]], swept: dict[str, list[str]]
) -> str:
    get = shop.premises.todos.get
    found: dict[str, Any] = {name: tuple(get(id) for id in swept[name]) for name in _SWEPT}
    since = last_cycle(shop.premises.store, mission, run.id)
    return shop.premises.briefing.for_lead(mission, dict(reports), OverdueReport(**found), since)


def last_cycle(store: Store, mission: Mission, but: str = "") -> str:
    """When the Lead last looked at all that was reported: as the cycle before this one began."""
    with store.read() as tx:
        found = run_records.select(
            tx, run_records.LATEST_BY_KIND, mission_id=mission.id, kind=RunKind.CYCLE.value, but=but
        )
    return found[0].created_at if found else mission.created_at


async def _collect(run: Run, shop: WorkflowContext, mission: Mission) -> list[str]:
    # One that hangs has a limit of its own; one that fails stops no other.
    come = partial(shop.premises.collecting.run, shop.scope(run), mission.slug, once=run.id)
    return told(mission, await asyncio.to_thread(come))


async def _plan(run: Run, shop: WorkflowContext, mission: Mission, stale: list[str]) -> list[str]:
    def queue() -> list[str]:
        standing = shop.premises.missions.standing(mission)
        with shop.premises.store.write() as tx:
            # Two workers may come here with the same runs.
            mission_repository.lock_mission(tx, mission.id)
            return [_queue(tx, run, shop, mission, one.pillar, stale) for one in standing]

    return await shop.aside(queue)


def _queue(tx: Transaction, run: Run, shop: WorkflowContext, mission: Mission, pillar: Pillar, stale: list[str]) -> str:
    queued = runs.enqueue(
        tx,
        shop.scope(run),
        kind=RunKind.PLAN,
        conversation_id=pillar.conversation_id,
        agent=OWNER,
        request={"cycle": run.id, "pillar": pillar.slug, "stale": stale},
        mission_id=mission.id,
        pillar_id=pillar.id,
        # The same step makes the same runs, however often it is taken.
        id=f"{run.id}-{pillar.position}",
    )
    return queued.id


async def _planned(run: Run, shop: WorkflowContext, planned: list[str]) -> list[tuple[str, str]] | None:
    """What the owners reported, as soon as all of them have; None when somebody has stopped the cycle."""
    while True:
        try:
            now = await shop.turns.heed(run)
        except RunStopped:
            return None
        found = await shop.aside(_all, shop, planned)
        left = [one for one in found if one.status in OPEN]
        resting = left and all(one.status in (RunStatus.WAITING, RunStatus.PAUSED) for one in left)
        if now.status is RunStatus.WAITING and not resting:
            await shop.aside(shop.book.wake, run.id, "planning goes on")
        if now.status is RunStatus.RUNNING and resting:
            # Somebody must do something before it goes on: that is to be seen.
            await shop.aside(
                shop.book.wait, run.id, f"the planning of {', '.join(one.parameters['pillar'] for one in left)}"
            )
        if not left:
            return [(one.parameters["pillar"], one.result or f"({one.status}: {one.why})") for one in found]
        await asyncio.sleep(INTERVAL)


def stop_planning(run: Run, shop: WorkflowContext, why: str) -> None:
    """A cycle that is stopped takes the planning of its pillars along."""
    with shop.premises.store.write() as tx:
        for one in run_records.select(
            tx, run_records.OPEN_BY_KIND, mission_id=str(run.mission_id), kind=RunKind.PLAN.value
        ):
            locked = run_records.lock(tx, one.id) if one.parameters.get("cycle") == run.id else None
            if locked is not None and locked.status in OPEN:
                runs.request_control(tx, shop.scope(run), locked, why, wish=ControlRequest.STOP, why=why)


def _all(shop: WorkflowContext, ids: list[str]) -> list[Run]:
    with shop.premises.store.read() as tx:
        return [found for id in ids if (found := run_records.find(tx, id)) is not None]
