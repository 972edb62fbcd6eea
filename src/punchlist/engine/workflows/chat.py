"""What people have said in a mission's chat, answered by its agent one after the other (M10)."""

from __future__ import annotations

from functools import partial

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import NewMessage, Scope
from punchlist.engine.turns import TurnTask
from punchlist.engine.worker_services import AgentPosition
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.engine.workflows.cycle import last_cycle
from punchlist.kernel.actors import Actor, Role
from punchlist.missions.model import Mission
from punchlist.missions.planning.prompts import news_text
from punchlist.runs.model import Run


async def chat(run: Run, shop: WorkflowContext) -> str:
    mission = await shop.aside(shop.mission, run) if run.mission_id else None
    pillar = await shop.aside(shop.pillar, run) if run.pillar_id else None
    agent = shop.agent(run.agent)
    remark = None if mission is None or pillar is not None else partial(_news, shop, mission)
    answered = 0
    while True:
        turn_id = await shop.step(f"next.{answered}", lambda: _next(run, shop))
        if turn_id is None:
            return f"{answered} answered."
        post = AgentPosition(run.conversation_id, mission, pillar)
        task = TurnTask(f"answer.{answered}", post, agent, NewMessage("user", "text", ""), remark)
        await shop.turns.take(run, task, begun=turn_id)
        answered += 1


def _news(shop: WorkflowContext, mission: Mission) -> str:
    """What the Lead does not see in the mission chat (M9)."""
    return news_text(shop.premises.briefing.news(mission, last_cycle(shop.premises.store, mission)))


async def _next(run: Run, shop: WorkflowContext) -> str | None:
    """The turn that the next message has begun."""
    scope = Scope(run.conversation_id, Actor(Role.SYSTEM, run.agent))
    queue, conversations = MessageQueue(shop.premises.store), shop.premises.conversations
    left = await shop.aside(conversations.current_turn, run.conversation_id)
    if left is not None:
        if await shop.aside(queue.began, run.conversation_id, left.id):
            # It was begun, and we died before that was known here.
            return left.id
        # A run that was stopped or given up has left it. Nobody works on it: the chat is ours.
        await shop.aside(conversations.end_turn, scope, reason="what it was for has ended")
    delivered = await shop.aside(queue.deliver, scope)
    return delivered.turn.id if delivered is not None else None
