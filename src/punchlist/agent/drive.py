"""The loop that owns the list: it plans once, then gives the agent one item at a time (V5).

    plan (if there is no list) -> each open item in order, in a fresh context -> answer

The turn itself has only the plan and the answer; each attempt at an item is a turn of its own below it. Small models
finish more this way, and a long list costs little, because no context grows.
"""

from __future__ import annotations

import re
from typing import Final

from punchlist.agent.continuation import Continue, Reason, Stop, Wait, must_stop, next_item
from punchlist.agent.item_runner import ItemRunner
from punchlist.agent.message_kinds import CONTINUATION, RESUMED
from punchlist.agent.prompts import DRIVE_ANSWER, DRIVE_PLAN_AGAIN, DRIVE_PLAN_MORE, DRIVE_PLAN_POINTS
from punchlist.agent.turn import Turn
from punchlist.agent.turn_model import TurnResult
from punchlist.models.model import Reply

PLANNING_CALLS: Final = 3
MAX_RECHECKS: Final = 3
"""How often items are worked on again because later ones have broken them."""
_LISTED: Final = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*•])\s+(?:\[.\]\s+)?(\S.*)$", re.MULTILINE)


async def run_drive(turn: Turn, goal: str | None, runner: ItemRunner) -> TurnResult:
    """`goal=None` resumes an interrupted turn."""
    resumed = goal is None
    reply: Reply | None = None
    if goal is None:
        reply = await turn.restore()
    else:
        await turn.begin(goal)
    if reply is None and (stop := turn.limit()) is not None:
        return await turn.end(stop.reason, stop.why)
    is_planned = turn.is_planned if goal is not None else bool(turn.lists.open or turn.lists.plan_text)
    if not is_planned and (stopped := await _plan(turn, runner, reply)) is not None:
        return stopped
    while True:
        if (ended := await _clear_list(turn, runner, resumed=resumed)) is not None:
            return ended
        if turn.has_goal and (ended := await _reach_goal(turn, runner)) is not None:
            return ended
        outcomes = await runner.outcomes()
        await turn.answer(DRIVE_ANSWER.format(outcomes=outcomes), fallback=outcomes)
        await turn.situation(Reply())
        if all(item.id in runner.skipped for item in turn.lists.open):
            break
        # Items were added while the model answered.
        resumed = False
    if turn.lists.open:
        return await turn.end(Reason.OPEN, "some items could not be finished")
    if shortfall := await runner.shortfall():
        return await turn.end(Reason.OPEN, shortfall)
    not_done = await runner.not_done(turn.answer_text)
    return await turn.end(Reason.COMPLETED, "every item has ended", not_done=not_done)


async def _clear_list(turn: Turn, runner: ItemRunner, *, resumed: bool = False) -> TurnResult | None:
    """Work off the list until the checks of all items hold together. Returns a result if the turn ends or waits."""
    for _ in range(MAX_RECHECKS + 1):
        if (ended := await _work_off(turn, runner, resumed=resumed)) is not None:
            return ended
        if not await turn.recheck():
            return None
        resumed = False
    return await turn.end(Reason.OPEN, "items break the checks of each other")


async def _work_off(turn: Turn, runner: ItemRunner, *, resumed: bool = False) -> TurnResult | None:
    """Work on the open items in order. Returns a result if the turn ends or waits."""
    while True:
        if (stop := must_stop(await turn.situation(Reply()))) is not None:
            return await turn.end(stop.reason, stop.why)
        item = next_item([each for each in turn.lists.open if each.id not in runner.skipped])
        if item is None:
            waiting = [f"{each.title}: {each.waits_for}" for each in turn.lists.open if each.waits_for]
            return await turn.suspend(waiting) if waiting else None
        match await runner.work_off(turn.goal, item, resumed=resumed):
            case Wait(on):
                return await turn.suspend(on)
            case Stop(reason, why):
                return await turn.end(reason, why)
        resumed = False


async def _reach_goal(turn: Turn, runner: ItemRunner) -> TurnResult | None:
    """Have the goal judged; what is missing becomes an item. Returns a result if the turn ends or waits."""
    while True:
        match await turn.judge():
            case Stop(reason, why):
                return None if reason is Reason.COMPLETED else await turn.end(reason, why)
            case Continue():
                await runner.create([f"Meet the goal. Missing: {turn.missing}"])
        if (ended := await _clear_list(turn, runner)) is not None:
            return ended


async def _plan(turn: Turn, runner: ItemRunner, reply: Reply | None) -> TurnResult | None:
    """Have the model write the plan. Returns a result if the turn ends here."""
    before, points, is_asked = len(turn.lists.items), len(titles_in(turn.goal)), False
    if reply is None and turn.lists.open:
        await turn.say(DRIVE_PLAN_MORE, RESUMED)
    for _ in range(PLANNING_CALLS):
        reply = reply or await turn.ask()
        await turn.run_calls(reply)
        if (stop := must_stop(await turn.situation(reply)) or turn.limit()) is not None:
            return await turn.end(stop.reason, stop.why)
        planned = len(turn.lists.items) - before
        if is_asked or planned >= max(points, 1):
            return None
        if planned:
            # A small model plans the first point of a request and forgets the others.
            is_asked, reply = True, None
            items = "one item" if planned == 1 else f"{planned} items"
            await turn.say(DRIVE_PLAN_POINTS.format(points=points, items=items), CONTINUATION)
            continue
        if not reply.calls:
            if listed := titles_in(reply.text):
                # A small model writes the list as text.
                await runner.create(listed)
                await turn.situation(reply)
                return None
            await turn.say(DRIVE_PLAN_AGAIN, CONTINUATION)
        # A refused call has a result that says what to change.
        reply = None
    await runner.create(titles_in(turn.goal) or [turn.goal])
    await turn.situation(Reply())
    return None


def titles_in(text: str) -> list[str]:
    """The items of a numbered or bulleted list in a text."""
    return [" ".join(found.split()) for found in _LISTED.findall(text)]
