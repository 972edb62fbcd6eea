"""A run holds the todo that its owner works on, like any other agent would (X3).

Somebody else may have claimed it, such as an owner who comes over MCP: then the run waits. When that one
reports, there is no work left but the review; when it gives the todo back or dies, the run takes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, TypedDict

from punchlist.claims import repository as claim_records
from punchlist.claims import validation as claim_rules
from punchlist.claims.model import ClaimGranted
from punchlist.conversations.model import Message, NoticeKind
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.errors import Conflict, IllegalTransition, PunchlistError
from punchlist.missions.chats.quote import unmarked
from punchlist.missions.model import Mission, MissionTodo
from punchlist.missions.todos.claims import MissionClaims
from punchlist.missions.todos.lifecycle import OPEN
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run

SECONDS: Final = 120
INTERVAL: Final = 0.5


class ClaimState(TypedDict):
    """As a step keeps it: a claim of ours, somebody's report, or neither, when the todo has ended."""

    fence: int | None
    report: str | None


async def hold(run: Run, shop: WorkflowContext, mission: Mission) -> ClaimState:
    while True:
        now = await shop.turns.heed(run)
        todo = await shop.aside(shop.premises.todos.get, str(run.todo_id))
        found = await shop.aside(_look, run, shop, mission, todo)
        if not isinstance(found, str):
            if now.status is RunStatus.WAITING:
                await shop.aside(shop.book.wake, run.id, "the todo is free")
            return found
        if now.status is RunStatus.RUNNING:
            await shop.aside(shop.book.wait, run.id, found)
        await asyncio.sleep(INTERVAL)


def _look(run: Run, shop: WorkflowContext, mission: Mission, todo: MissionTodo) -> ClaimState | str:
    """What is so now; in words what is waited for, when it is held by somebody else."""
    if todo.status not in OPEN:
        return {"fence": None, "report": None}
    if (report := _reported(shop, run.conversation_id, todo)) is not None:
        return {"fence": None, "report": report}
    try:
        claimed = _claims(shop).claim(shop.scope(run), _at(run), mission.slug, todo.id, SECONDS, reason="a run")
    except Conflict as held:
        return _ours(run, shop, todo) or str(held)
    except IllegalTransition:
        return {"fence": None, "report": None}
    assert isinstance(claimed, ClaimGranted)
    return {"fence": claimed.claim.fence, "report": None}


def _ours(run: Run, shop: WorkflowContext, todo: MissionTodo) -> ClaimState | None:
    """What this run has claimed before its worker died."""
    with shop.premises.store.read() as tx:
        claim = claim_records.find(tx, todo.id)
        mine = (
            claim is not None
            and claim_rules.is_held(claim, tx.now())
            and (claim.holder or "").endswith(f"({_at(run)})")
        )
    return {"fence": claim.fence, "report": None} if claim is not None and mine else None


def _reported(shop: WorkflowContext, conversation_id: str, todo: MissionTodo) -> str | None:
    """What an owner who works elsewhere has reported since the todo was started, or last sent back."""
    mark = f"[TODO {todo.id}"
    newest: str | None = None
    for message in shop.premises.conversations.posted(conversation_id):
        if message.created_at < (todo.started_at or "") or not message.content.startswith(mark):
            continue
        newest = _said(message) if message.kind == NoticeKind.TODO_RESULT else None
    return newest


def _said(message: Message) -> str:
    return unmarked(message.content.partition("\n")[2])


@asynccontextmanager
async def renewed(run: Run, shop: WorkflowContext, fence: int | None) -> AsyncIterator[None]:
    """As long as somebody works on it, the todo stays ours."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(SECONDS / 4)
            with suppress(PunchlistError):
                await shop.aside(
                    _claims(shop).renew_claim, shop.scope(run), _at(run), str(run.todo_id), fence or 0, SECONDS
                )

    renewing = asyncio.create_task(renew()) if fence is not None else None
    try:
        yield
    finally:
        if renewing is not None:
            renewing.cancel()


def _claims(shop: WorkflowContext) -> MissionClaims:
    return MissionClaims(shop.premises.store)


def _at(run: Run) -> str:
    return f"run {run.id}"
