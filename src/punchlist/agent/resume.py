"""`run --resume`: what a session was at, and how to go on with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.message_kinds import TEXT
from punchlist.agent.restore import resume_prompt
from punchlist.agent.runtime import AgentRuntime, TurnOutcome
from punchlist.conversations.model import MessageRole, StoredTurn, TurnScope
from punchlist.errors import NotFound
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.storage.async_bridge import make_bridge

MOST_TURNS: Final = 10_000
"""To look through: those of workers are among them, and one turn can have hundreds."""
Choose = Callable[[str], AgentDefinition]
"""The agent of a name."""


async def resume_session(runtime: AgentRuntime, choose: Choose, signal: CancelSignal) -> TurnOutcome:
    """Go on with the turn that was left open; after one that has ended, a new one with what is left (T14)."""
    last = await _last(runtime, choose)
    agent = choose(last.agent_id)
    if last.open:
        return await runtime.resume(agent, last.id, signal)
    return await runtime.run(agent, await _what_is_left(runtime, last), signal)


async def _last(runtime: AgentRuntime, choose: Choose) -> StoredTurn:
    """The newest turn that an agent of ours has worked in. Agents of others have turns in a session, too."""
    aside, id = make_bridge(runtime.site.store), runtime.site.scope.conversation_id
    for turn in await aside(runtime.conversations.turns, id, MOST_TURNS):
        if turn.parent_turn_id is not None:
            continue
        said = await aside(runtime.conversations.turn_messages, turn.id)
        if said and (_is_ours(choose, turn) or any(message.role == MessageRole.ASSISTANT for message in said)):
            ended = (turn.end_reason or "").partition(":")[0]
            if ended == Reason.COMPLETED:
                raise NotFound(f"There is nothing to go on with: the last turn of session {id!r} was completed.")
            return turn
    raise NotFound(f"There is nothing to go on with: no agent has worked in session {id!r} yet.")


def _is_ours(choose: Choose, turn: StoredTurn) -> bool:
    try:
        choose(turn.agent_id)
    except NotFound:
        return False
    return True


async def _what_is_left(runtime: AgentRuntime, turn: StoredTurn) -> str:
    aside = make_bridge(runtime.site.store)
    said = await aside(runtime.conversations.turn_messages, turn.id)
    request = next((message.content for message in said if message.kind == TEXT), "")
    scope = TurnScope(turn.conversation_id, runtime.site.scope.actor, turn.id)
    view = await aside(runtime.lists(scope, turn.started_at).read)
    return resume_prompt(request, turn.end_reason or "", view.open)
