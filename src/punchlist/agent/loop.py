"""The agent loop: ask the model, run its calls, decide; until the list is clear or a named reason stops the turn.

`turn.py` holds the state of a turn and its steps. `continuation.py` alone decides what happens next.
"""

from __future__ import annotations

from punchlist.agent.continuation import Continue, Proceed, Stop, Wait, decide
from punchlist.agent.turn import Turn, TurnResult
from punchlist.models.model import Reply


async def run_loop(turn: Turn, goal: str | None) -> TurnResult:
    """`goal=None` resumes an interrupted turn."""
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
