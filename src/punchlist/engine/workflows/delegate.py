"""A mission for a worker that nobody waits for: what came of it is posted where it was asked for (M9)."""

from __future__ import annotations

from dataclasses import replace

from punchlist.agent.continuation import Reason
from punchlist.conversations.model import Line, Notice
from punchlist.engine.turns import Task
from punchlist.engine.worker_services import Post
from punchlist.engine.workflow_context import Shop
from punchlist.kernel.actors import Role
from punchlist.missions.chats.quote import marked
from punchlist.runs.model import Run


async def delegate(run: Run, shop: Shop) -> str:
    asked = run.asked
    # Whoever delegated keeps the plan, and what to delegate further is theirs to decide.
    worker = replace(shop.agent(run.agent), role=Role.WORKER)
    task = Task("work", Post(run.conversation_id), worker, Line("user", "text", asked["mission"]))
    came = await shop.turns.take(run, task)
    finished = came["reason"] == Reason.COMPLETED
    about = f"[{run.agent}, run {run.workflow_id}]"
    told = came["text"] if finished else f"It did not finish ({came['reason']}: {came['why']}). {came['text']}"
    kind = Notice.WORKER_RESULT if finished else Notice.TODO_ERROR
    await shop.post("result", run, asked["origin"], kind, f"{about}\n{marked(told)}")
    return told
