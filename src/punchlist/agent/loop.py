"""The agent loop: ask the model, run its calls, decide; until the list is clear or a named reason stops the turn.

`turn.py` holds the state of a turn and its steps. `continuation.py` alone decides what happens next.
"""

from __future__ import annotations

from punchlist.agent.continuation import Continue, Decision, Judge, Proceed, Stop, TryFresh, Wait, decide
from punchlist.agent.turn import Turn
from punchlist.agent.turn_model import TurnResult
from punchlist.models.model import Reply


async def run_loop(turn: Turn, goal: str | None) -> TurnResult:
    """`goal=None` resumes an interrupted turn."""
    reply: Reply | None = None
    if goal is None:
        reply = await turn.restore()
    else:
        await turn.begin(goal)
    decision: Decision = Proceed() if reply is not None else turn.limit() or Proceed()
    while True:
        match decision:
            case Continue(prompt):
                await turn.send_continuation(prompt)
            case Wait(on):
                return await turn.suspend(on)
            case Stop(reason, why):
                await turn.report(reason, why)
                return await turn.end(reason, why)
        reply = reply or await turn.ask()
        await turn.run_calls(reply)
        decision = await _decide(turn, reply)
        reply = None


async def _decide(turn: Turn, reply: Reply) -> Decision:
    decision = decide(await turn.situation(reply))
    if isinstance(decision, TryFresh):
        return await turn.try_fresh(decision.item)
    if not isinstance(decision, Judge):
        return decision
    verdict = await turn.judge()
    # Items may have been added while it judged.
    return decide(await turn.situation(reply)) if turn.lists.open else verdict
