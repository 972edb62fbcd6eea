"""A run claims the todo that its owner works on, like any other agent (X3).

Another agent, such as an owner connected over MCP, may hold the claim: then the run waits. If that agent reports, only
the review is left to do; if its claim is released or expires, the run claims the todo.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, TypedDict

from punchlist.claims import repository as claim_repository
from punchlist.claims import validation as claim_validation
from punchlist.claims.model import ClaimGranted
from punchlist.conversations.model import NoticeKind
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.errors import Conflict, IllegalTransition, PunchlistError
from punchlist.missions.chats import unquote
from punchlist.missions.model import Mission, MissionTodo
from punchlist.missions.todos.claims import MissionClaims
from punchlist.missions.todos.lifecycle import OPEN
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run

LEASE_SECONDS: Final = 120
POLL_INTERVAL: Final = 0.5


class ClaimState(TypedDict):
    """The run's claim, the report of another agent, or neither when the todo has ended."""

    fence: int | None
    report: str | None


_ENDED: Final[ClaimState] = {"fence": None, "report": None}


async def claim_todo(run: Run, context: WorkflowContext, mission: Mission) -> ClaimState:
    """Wait until the run holds the claim, another agent has reported, or the todo has ended."""
    while True:
        now = await context.turns.check_requests(run)
        todo = await context.call(context.services.mission_todos.get, str(run.todo_id))
        state = await context.call(_try_claim, run, context, mission, todo)
        if not isinstance(state, str):
            if now.status is RunStatus.WAITING:
                await context.call(context.queue.wake, run.id, "the todo is free")
            return state
        if now.status is RunStatus.RUNNING:
            await context.call(context.queue.wait, run.id, state)
        await asyncio.sleep(POLL_INTERVAL)


def _try_claim(run: Run, context: WorkflowContext, mission: Mission, todo: MissionTodo) -> ClaimState | str:
    """The state, or a message that says which agent holds the claim."""
    if todo.status not in OPEN:
        return _ENDED
    if (report := _external_report(context, run.conversation_id, todo)) is not None:
        return {"fence": None, "report": report}
    claims, scope = MissionClaims(context.services.store), context.scope(run)
    try:
        granted = claims.claim(scope, _holder(run), mission.slug, todo.id, LEASE_SECONDS, reason="a run")
    except Conflict as held:
        return _own_claim(run, context, todo) or str(held)
    except IllegalTransition:
        return _ENDED
    assert isinstance(granted, ClaimGranted)
    return {"fence": granted.claim.fence, "report": None}


def _own_claim(run: Run, context: WorkflowContext, todo: MissionTodo) -> ClaimState | None:
    """The claim that an earlier worker of this run made before it died."""
    with context.services.store.read() as tx:
        claim = claim_repository.find(tx, todo.id)
        if claim is None or not claim_validation.is_held(claim, tx.now()):
            return None
    own = (claim.holder or "").endswith(f"({_holder(run)})")
    return {"fence": claim.fence, "report": None} if own else None


def _external_report(context: WorkflowContext, conversation_id: str, todo: MissionTodo) -> str | None:
    """The report of another agent since the todo was started or last sent back."""
    heading = f"[TODO {todo.id}"
    report: str | None = None
    for message in context.services.conversations.messages_outside_turns(conversation_id):
        if message.created_at >= (todo.started_at or "") and message.content.startswith(heading):
            text = unquote(message.content.partition("\n")[2])
            report = text if message.kind == NoticeKind.TODO_RESULT else None
    return report


@asynccontextmanager
async def keep_renewed(run: Run, context: WorkflowContext, fence: int | None) -> AsyncIterator[None]:
    """Renew the claim in the background while the owner works."""

    async def renew() -> None:
        claims, scope, todo_id = MissionClaims(context.services.store), context.scope(run), str(run.todo_id)
        while True:
            await asyncio.sleep(LEASE_SECONDS / 4)
            with suppress(PunchlistError):
                await context.call(claims.renew_claim, scope, _holder(run), todo_id, fence or 0, LEASE_SECONDS)

    renewal = asyncio.create_task(renew()) if fence is not None else None
    try:
        yield
    finally:
        if renewal is not None:
            renewal.cancel()


def _holder(run: Run) -> str:
    return f"run {run.id}"
