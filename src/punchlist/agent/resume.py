"""Resuming: restore an interrupted turn from its messages, find what a session was doing, wait until it can go on.

A restored turn counts its usage from its stored messages, so there are no counters to lose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from punchlist.agent.context import kept_messages
from punchlist.agent.continuation import OpenItem, Reason, TurnCounters
from punchlist.agent.definitions import CHECKLIST_TOOL, AgentDefinition
from punchlist.agent.message_kinds import COMPACTION, CONTINUATION, REMINDER, TEXT
from punchlist.agent.transcript import from_stored
from punchlist.agent.work_log import result_fields
from punchlist.checklist.render import completed_items
from punchlist.conversations.model import Message as StoredMessage
from punchlist.conversations.model import MessageRole, StoredTurn, TurnScope
from punchlist.errors import NotFound
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.text import one_line
from punchlist.models.model import CallReturn, Message, Reply, Usage
from punchlist.plan.lifecycle import PlanStatus
from punchlist.storage.async_bridge import make_bridge
from punchlist.toolcalls.approval_store import Approvals

if TYPE_CHECKING:
    from punchlist.agent.runtime import AgentRuntime
    from punchlist.agent.turn_model import TurnResult

MAX_TURNS: Final = 10_000
"""Turns searched for the one to resume. Workers' turns are among them, and one turn can have hundreds."""
POLL_INTERVAL: Final = 0.25
"""Seconds."""
ONE_BY_ONE: Final = "a new request, one item at a time"
"""Why a turn was begun whose items are worked on one by one (V5)."""
_CONTINUES: Final = "Continue the last request. "
_REQUEST: Final = "\n\nThe request was:\n\n"
FindAgent = Callable[[str], AgentDefinition]
"""The agent with a name; raises `NotFound`."""


# --- restore one turn -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RestoredTurn:
    messages: Sequence[Message]
    counters: TurnCounters
    usage: Usage
    reply: Reply | None
    """The last reply, if its calls are unfinished or no decision followed it."""
    answered: frozenset[str]
    """Calls whose results are among the messages."""
    reminded: bool = False
    """The last message is a reminder."""
    compactions: Sequence[tuple[int, int]] = ()
    """After how many messages the context was compacted, and how many of them stayed."""

    @property
    def last_text(self) -> str:
        texts = (message.text for message in reversed(self.messages) if isinstance(message, Reply) and message.text)
        return next(texts, "")


def restore(rows: Sequence[StoredMessage]) -> RestoredTurn:
    """Pure function from the stored messages of a turn to its state."""
    converted = [(row.kind, message) for row in rows if (message := from_stored(row)) is not None]
    messages = [message for _, message in converted]
    replies = [message for message in messages if isinstance(message, Reply)]
    answered = frozenset(message.call_id for message in messages if isinstance(message, CallReturn))
    usage = Usage()
    for reply in replies:
        usage += reply.usage
    last = next((message for message in reversed(messages) if not isinstance(message, CallReturn)), None)
    pending = last if isinstance(last, Reply) else None
    if pending and pending.calls and all(call.id in answered for call in pending.calls):
        pending = None
    counters = TurnCounters(
        iterations=len(replies),
        continuations=_counted_continuations(converted),
        all_continuations=sum(row.kind == CONTINUATION for row in rows),
        tokens=usage.total,
        context=replies[-1].usage.total if replies else 0,
    )
    reminded = bool(converted) and converted[-1][0] == REMINDER
    return RestoredTurn(messages, counters, usage, pending, answered, reminded, _compactions(rows))


def _compactions(rows: Sequence[StoredMessage]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    messages = 0
    for row in rows:
        if row.kind == COMPACTION and (kept := kept_messages(row.content)) is not None:
            found.append((messages, kept))
        messages += from_stored(row) is not None
    return found


def _counted_continuations(messages: Sequence[tuple[str, Message]]) -> int:
    """Continuations, less one for each item completed since (C4), as `TurnProgress` counts them.

    What the checklist had before the turn is in no message, so its first result in the turn gives nothing back.
    """
    count = 0
    ticked: int | None = None
    for kind, message in messages:
        if kind == CONTINUATION:
            count += 1
        if not isinstance(message, CallReturn) or message.failed:
            continue
        if message.tool == "complete_todo":
            count -= result_fields(message.text).get("status") == PlanStatus.COMPLETED
        elif message.tool == CHECKLIST_TOOL and (now := completed_items(message.text)) is not None:
            count -= max(now - ticked, 0) if ticked is not None else 0
            ticked = now
        count = max(count, 0)
    return count


# --- resume a session -------------------------------------------------------------------------------------


async def resume_session(
    runtime: AgentRuntime, find_agent: FindAgent, signal: CancelSignal, *, strategy: str | None = None
) -> TurnResult:
    """Resume the open turn of the session. If the last turn has ended, start a new one with its open items (T14).

    A turn whose items were worked on one by one goes on like that, unless `strategy` names the one to use.
    """
    last = await _last_turn(runtime, find_agent)
    agent = find_agent(last.agent_id)
    begun = await make_bridge(runtime.site.store)(runtime.conversations.begin_reason, last)
    if strategy is None and begun == ONE_BY_ONE:
        agent = replace(agent, strategy="drive")
    if last.open:
        return await runtime.resume(agent, last.id, signal)
    # Its acceptance criteria hold until they are met.
    until, goal = await runtime.stored_goal(last.id), await _new_goal(runtime, last, agent)
    return await runtime.run(agent, goal, signal, take_over=last.id, until=until, is_planned=True)


async def _last_turn(runtime: AgentRuntime, find_agent: FindAgent) -> StoredTurn:
    """The newest turn of one of our agents. Third-party agents have turns in a session, too."""
    call, session = make_bridge(runtime.site.store), runtime.site.scope.conversation_id
    for turn in await call(runtime.conversations.turns, session, MAX_TURNS):
        if turn.parent_turn_id is not None:
            continue
        messages = await call(runtime.conversations.turn_messages, turn.id)
        replied = any(message.role == MessageRole.ASSISTANT for message in messages)
        if messages and (replied or _is_known(find_agent, turn.agent_id)):
            if (turn.end_reason or "").partition(":")[0] == Reason.COMPLETED:
                raise NotFound(f"Nothing to resume: the last turn of session {session!r} was completed.")
            return turn
    raise NotFound(f"Nothing to resume: no agent has worked in session {session!r} yet.")


def _is_known(find_agent: FindAgent, name: str) -> bool:
    try:
        find_agent(name)
    except NotFound:
        return False
    return True


async def _new_goal(runtime: AgentRuntime, turn: StoredTurn, agent: AgentDefinition) -> str:
    call = make_bridge(runtime.site.store)
    messages = await call(runtime.conversations.turn_messages, turn.id)
    request = next((message.content for message in messages if message.kind == TEXT), "")
    scope = TurnScope(turn.conversation_id, runtime.site.scope.actor, turn.id)
    lists = await call(runtime.lists(scope).read)
    # An agent with a history sees there how the turn has ended.
    return resume_prompt(request, "" if agent.history else turn.end_reason or "", lists.open)


def is_continuation(request: str) -> bool:
    """Whether a turn's request continues an earlier turn."""
    return request.startswith(_CONTINUES)


def original_request(request: str) -> str:
    """The person's request: a turn that continues another one has it at the end of its own."""
    return request.partition(_REQUEST)[2] if is_continuation(request) else request


def resume_prompt(request: str, end_reason: str, open: Sequence[OpenItem]) -> str:
    """The goal of a turn that continues one that has ended (T14)."""
    request = original_request(request)
    ended = f"The previous turn ended ({one_line(end_reason)}). " if end_reason else ""
    items = "open item is" if len(open) == 1 else f"{len(open)} open items are"
    taken_over = f"Its {items} on your list. " if open else ""
    return f"{_CONTINUES}{ended}{taken_over}First check what is already done, then finish the rest.{_REQUEST}{request}"


# --- wait until a turn can be resumed ---------------------------------------------------------------------


async def wait_until_resumable(runtime: AgentRuntime, turn_id: str, signal: CancelSignal) -> bool:
    """True once the turn can be resumed; False if the signal is set or the turn has ended."""
    while not signal.is_set:
        resumable = await is_resumable(runtime, turn_id)
        if resumable is not False:
            return resumable is True
        await asyncio.sleep(POLL_INTERVAL)
    return False


async def is_resumable(runtime: AgentRuntime, turn_id: str) -> bool | None:
    """Whether a waiting turn has anything to do again; None if the turn has ended."""
    call, store, session = make_bridge(runtime.site.store), runtime.site.store, runtime.site.scope
    scope = TurnScope(session.conversation_id, session.actor, turn_id)
    if not (await call(runtime.conversations.turn, turn_id)).open:
        return None
    lists = await call(runtime.lists(scope).read)
    if await asyncio.to_thread(_awaits_approval, runtime, Approvals(store), scope):
        return False
    return not lists.open or any(item.waits_for is None for item in lists.open)


def _awaits_approval(runtime: AgentRuntime, approvals: Approvals, scope: TurnScope) -> bool:
    """Whether a call of the turn or of its workers awaits approval. Calls of earlier turns do not count."""
    waiting = approvals.waiting(scope.conversation_id)
    if not waiting:
        return False
    turns, parents = {scope.turn_id}, [scope]
    while parents:
        children = runtime.conversations.child_turns(parents.pop())
        turns.update(child.id for child in children)
        parents += [replace(scope, turn_id=child.id) for child in children]
    return any(approvals.call(question.call_id).turn_id in turns for question in waiting)
