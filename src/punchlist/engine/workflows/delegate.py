"""A mission for a worker that nobody waits for: what came of it is posted where it was asked for (M9)."""

from __future__ import annotations

from dataclasses import replace

from punchlist.agent.continuation import Reason
from punchlist.conversations.model import NewMessage, NoticeKind
from punchlist.engine.turns import TurnTask
from punchlist.engine.worker_services import AgentPosition
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.kernel.actors import Role
from punchlist.missions.chats.quote import marked
from punchlist.runs.model import Run


async def delegate(run: Run, shop: WorkflowContext) -> str:
    asked = run.parameters
    # Whoever delegated keeps the plan, and what to delegate further is theirs to decide.
    worker = replace(shop.agent(run.agent), role=Role.WORKER)
    task = TurnTask("work", AgentPosition(run.conversation_id), worker, NewMessage("user", "text", asked["mission"]))
    came = await shop.turns.take(run, task)
    finished = came["reason"] == Reason.COMPLETED
    about = f"[{run.agent}, run {run.workflow_id}]"
    told = came["text"] if finished else f"It did not finish ({came['reason']}: {came['why']}). {came['text']}"
    kind = NoticeKind.WORKER_RESULT if finished else NoticeKind.TODO_ERROR
    await shop.post("result", run, asked["origin"], kind, f"{about}\n{marked(told)}")
    return told
