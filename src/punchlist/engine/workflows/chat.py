"""Answer the messages that people sent to a mission's chat, one after the other (M10)."""

from __future__ import annotations

from functools import partial
from typing import Final

from punchlist.agent.continuation import Reason
from punchlist.agent.message_kinds import TEXT
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import MessageRole, NewMessage, Scope
from punchlist.engine.runtime_factory import TurnTask
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.engine.workflows.cycle import last_cycle
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import Mission, Pillar
from punchlist.missions.planning.lead_prompts import updates_text
from punchlist.runs.model import Run

_AGAIN: Final = "(Again: an earlier attempt to answer this message failed.)\n\n"


async def chat(run: Run, context: WorkflowContext) -> str:
    mission = await context.mission(run) if run.mission_id else None
    pillar = await context.pillar(run) if run.pillar_id else None
    agent = context.agent(run.agent)
    remark = partial(_situation, context, mission, pillar) if mission is not None else None
    request = NewMessage("user", TEXT, "")
    answered = 0
    while True:
        turn_id = await context.step(f"next.{answered}", partial(_next_turn, run, context, is_first=answered == 0))
        if turn_id is None:
            return f"{answered} answered."
        key = f"answer.{answered}"
        task = TurnTask(key, agent, request, run.conversation_id, mission, pillar, remark=remark)
        await context.turns.run(run, task, turn_id)
        answered += 1


def _situation(context: WorkflowContext, mission: Mission, pillar: Pillar | None) -> str:
    """Goals, metrics and capacity; for the Lead also the reports from other chats (M9)."""
    services = context.services
    overview = services.briefing.overview(mission, pillar)
    if pillar is not None:
        return overview
    news = updates_text(services.briefing.updates(mission, last_cycle(services.store, mission)))
    return "\n\n".join(filter(None, (overview, news)))


async def _next_turn(run: Run, context: WorkflowContext, *, is_first: bool) -> str | None:
    """The turn that the next message begins; None when no message is left."""
    scope = Scope(run.conversation_id, Actor(Role.SYSTEM, run.agent))
    conversations = context.services.conversations
    queue = MessageQueue(context.services.store)
    open_turn = await context.call(conversations.current_turn, run.conversation_id, run.id)
    if open_turn is not None:
        if await context.call(queue.started_turn, run.conversation_id, open_turn.id):
            # A worker delivered the message and died before the step was recorded.
            return open_turn.id
        # An attempt that failed left the turn open.
        await context.call(conversations.end_turn, scope, reason="its run has ended", run_id=run.id)
    if is_first and (request := await context.call(_failed_request, run, context)) is not None:
        begin = partial(conversations.begin_turn, scope, reason="a retry", request=request, run_id=run.id)
        return (await context.call(begin)).id
    delivered = await context.call(queue.deliver, scope, run_id=run.id)
    return delivered.turn.id if delivered is not None else None


def _failed_request(run: Run, context: WorkflowContext) -> NewMessage | None:
    """The message that a retried run failed to answer: it has been delivered, so it is not in the queue any more."""
    conversations = context.services.conversations
    if run.leg == 0 or run.turn_id is None:
        return None
    if (conversations.turn(run.turn_id).end_reason or "").partition(":")[0] != Reason.ERROR:
        return None
    messages = conversations.turn_messages(run.turn_id)
    text = next((each.content for each in messages if (each.role, each.kind) == (MessageRole.USER, TEXT)), None)
    return NewMessage("user", TEXT, f"{_AGAIN}{text.removeprefix(_AGAIN)}") if text is not None else None
