"""The loop: ask, call, decide; until the list is clear, or something with a name stops it.

    while True:
        the model replies; its calls are run
        the governor (continuation.py) says: proceed, continue, wait or stop

What a turn is made of stands in `turn.py`; why it goes on or ends is the governor's alone.
"""

from __future__ import annotations

from punchlist.agent.continuation import Continue, Proceed, Stop, Wait, decide
from punchlist.agent.result import TurnResult
from punchlist.agent.turn import Turn
from punchlist.models.model import Reply


async def run_loop(turn: Turn, goal: str | None) -> TurnResult:
    """Without a goal, the turn is one that was left, and is gone on with."""
    reply: Reply | None = None
    if goal is None:
        reply = await turn.restore()
    else:
        await turn.begin(goal)
    while True:
        reply = reply or await turn.ask()
        await turn.run_calls(reply)
        match decide(await turn.situation(reply)):
            case Proceed():
                pass
            case Continue(prompt):
                await turn.send_continuation(prompt)
            case Wait(on):
                return await turn.suspend(on)
            case Stop(reason, why):
                return await turn.end(reason, why)
        reply = None
