"""What people have said in a mission's chat, answered by its agent one after the other (M10)."""

from __future__ import annotations

from punchlist.conversations.model import Line, Scope
from punchlist.conversations.queue import MessageQueue
from punchlist.engine.flows.shop import Shop
from punchlist.engine.premises import Post
from punchlist.engine.turns import Task
from punchlist.kernel.actors import Actor, Role
from punchlist.runs.model import Run


async def chat(run: Run, shop: Shop) -> str:
    mission = await shop.aside(shop.mission, run) if run.mission_id else None
    pillar = await shop.aside(shop.pillar, run) if run.pillar_id else None
    agent = shop.agent(run.agent)
    answered = 0
    while True:
        turn_id = await shop.step(f"next.{answered}", lambda: _next(run, shop))
        if turn_id is None:
            return f"{answered} answered."
        task = Task(f"answer.{answered}", Post(run.conversation_id, mission, pillar), agent, Line("user", "text", ""))
        await shop.turns.take(run, task, begun=turn_id)
        answered += 1


async def _next(run: Run, shop: Shop) -> str | None:
    """The turn that the next message has begun."""
    scope = Scope(run.conversation_id, Actor(Role.SYSTEM, run.agent))
    left = await shop.aside(shop.premises.conversations.current_turn, run.conversation_id)
    if left is not None and left.agent_id == run.agent:
        # It was begun, and we died before that was known here.
        return left.id
    delivered = await shop.aside(MessageQueue(shop.premises.store).deliver, scope)
    return delivered.turn.id if delivered is not None else None
