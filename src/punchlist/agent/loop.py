"""The loop: ask, call, decide; until the list is clear, or something with a name stops it.

    while True:
        the model replies; its calls are run
        the governor (continuation.py) says: proceed, continue, wait or stop

What a turn is made of stands in `turn.py`; why it goes on or ends is the governor's alone.
"""

from __future__ import annotations

from punchlist.agent.continuation import Continue, Proceed, Reason, Stop, Wait, decide
from punchlist.agent.turn import Ended, Turn


async def run(turn: Turn) -> Ended:
    await turn.begin()
    while True:
        reply = await turn.ask()
        await turn.call(reply)
        match decide(await turn.situation(reply)):
            case Proceed():
                continue
            case Continue(prompt):
                await turn.go_on(prompt)
            case Wait(on):
                return await turn.end(Reason.WAITING, "; ".join(on))
            case Stop(reason, why):
                return await turn.end(reason, why)
