"""Staying with a turn that waits, until it can go on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from punchlist.agent.runtime import AgentRuntime
from punchlist.conversations.model import TurnScope
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.storage.async_bridge import make_bridge
from punchlist.toolcalls.approval_store import Approvals

INTERVAL: Final = 0.25
"""Seconds between two looks."""


async def wait_until_resumable(runtime: AgentRuntime, turn_id: str, signal: CancelSignal) -> bool:
    """Whether it can; False when somebody has ended the waiting, or the turn."""
    while not signal.is_set:
        able = await is_resumable(runtime, turn_id)
        if able is not False:
            return able is True
        await asyncio.sleep(INTERVAL)
    return False


async def is_resumable(runtime: AgentRuntime, turn_id: str) -> bool | None:
    """Whether there is anything that a turn does not wait for; None when the turn has ended."""
    aside, store, here = make_bridge(runtime.site.store), runtime.site.store, runtime.site.scope
    scope = TurnScope(here.conversation_id, here.actor, turn_id)
    turn = await aside(runtime.conversations.current_turn, scope.conversation_id)
    if turn is None or turn.id != turn_id:
        return None
    view = await aside(runtime.lists(scope, turn.started_at).read)
    asked = await asyncio.to_thread(_asked, runtime, Approvals(store), scope)
    held_up = bool(view.open) and all(item.waits_for is not None for item in view.open)
    return not asked and not held_up


def _asked(runtime: AgentRuntime, approvals: Approvals, scope: TurnScope) -> bool:
    """Whether a call of the turn or of its workers waits for a person; those of earlier turns hold up nobody."""
    waiting = approvals.waiting(scope.conversation_id)
    if not waiting:
        return False
    turns = {scope.turn_id}
    left = [scope]
    while left:
        children = runtime.conversations.child_turns(left.pop())
        turns.update(child.id for child in children)
        left += [replace(scope, turn_id=child.id) for child in children]
    return any(approvals.call(one.call_id).turn_id in turns for one in waiting)
