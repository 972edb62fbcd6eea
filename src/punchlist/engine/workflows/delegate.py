"""An asynchronous delegation: a worker agent's turn, whose result is posted to the chat it came from (M9)."""

from __future__ import annotations

from dataclasses import replace

from punchlist.agent.continuation import Reason
from punchlist.conversations.model import NewMessage, NoticeKind
from punchlist.engine.runtime_factory import TurnTask
from punchlist.engine.turns import StepResult
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.kernel.actors import Role
from punchlist.missions.chats.quote import quote_verbatim
from punchlist.runs.model import Run


async def delegate(run: Run, context: WorkflowContext) -> str:
    # A worker gets neither the plan tools nor the delegate tool of the agent that delegated to it.
    worker = replace(context.agent(run.agent), role=Role.WORKER)
    request = NewMessage("user", "text", run.parameters["mission"])
    result = await context.turns.run(run, TurnTask("work", worker, request, run.conversation_id))
    kind = NoticeKind.WORKER_RESULT if result["reason"] == Reason.COMPLETED else NoticeKind.TODO_ERROR
    text = report_text(result)
    heading = f"[{run.agent}, run {run.workflow_id}]"
    await context.post("result", run, run.parameters["origin"], kind, f"{heading}\n{quote_verbatim(text)}")
    return text


def report_text(result: StepResult) -> str:
    """What the agent said, preceded by the reason if it did not complete its turn."""
    if result["reason"] == Reason.COMPLETED:
        return result["text"]
    return f"It did not finish ({result['reason']}: {result['why']}). {result['text']}"
