"""A mission for a worker that nobody waits for: what came of it is posted where it was asked for (M9)."""

from __future__ import annotations

from punchlist.agent.continuation import Reason
from punchlist.conversations.model import Line, Notice
from punchlist.engine.flows.shop import Shop
from punchlist.engine.premises import Post
from punchlist.engine.turns import Task
from punchlist.runs.model import Run


async def delegate(run: Run, shop: Shop) -> str:
    asked = run.asked
    task = Task("work", Post(run.conversation_id), shop.agent(run.agent), Line("user", "text", asked["mission"]))
    came = await shop.turns.take(run, task)
    finished = came["reason"] == Reason.COMPLETED
    about = f"[{run.agent}, run {run.id}]"
    told = came["text"] if finished else f"It did not finish ({came['reason']}: {came['why']}). {came['text']}"
    kind = Notice.WORKER_RESULT if finished else Notice.TODO_ERROR
    await shop.post("result", run, asked["origin"], kind, f"{about}\n{told}")
    return told
