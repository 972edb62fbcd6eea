"""Going on with a turn that was left: by a crash, or because it had to wait. Pure.

What the turn has used so far is counted from what was said, so there are no counters to lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from punchlist.agent.continuation import OpenItem, TurnCounters
from punchlist.agent.message_kinds import CONTINUATION, REMINDER
from punchlist.agent.transcript import from_stored
from punchlist.conversations.model import Message as Stored
from punchlist.kernel.text import visible
from punchlist.models.model import CallReturn, Message, Reply, Usage

_AGAIN: Final = "Go on with the last request; "
_REQUEST: Final = "\n\nThe request was:\n\n"


@dataclass(frozen=True, slots=True)
class RestoredTurn:
    messages: Sequence[Message]
    spent: TurnCounters
    usage: Usage
    reply: Reply | None
    """The last reply, when it is not known what came of it: its calls, or what the governor said."""
    answered: frozenset[str]
    """Calls whose results were said already."""
    reminded: bool = False
    """A reminder was the last that was said."""


def restore(rows: Sequence[Stored]) -> RestoredTurn:
    messages = [message for row in rows if (message := from_stored(row)) is not None]
    replies = [message for message in messages if isinstance(message, Reply)]
    answered = frozenset(message.call_id for message in messages if isinstance(message, CallReturn))
    usage = Usage()
    for reply in replies:
        usage += reply.usage
    last = next((message for message in reversed(messages) if not isinstance(message, CallReturn)), None)
    pending = last if isinstance(last, Reply) else None
    if pending and pending.calls and all(call.id in answered for call in pending.calls):
        pending = None
    spent = TurnCounters(
        iterations=len(replies),
        continuations=sum(row.kind == CONTINUATION for row in rows),
        tokens=usage.total,
        context=replies[-1].usage.total if replies else 0,
    )
    said = [row.kind for row in rows if from_stored(row) is not None]
    return RestoredTurn(messages, spent, usage, pending, answered, said[-1:] == [REMINDER])


def resume_prompt(request: str, ended: str, left: Sequence[OpenItem]) -> str:
    """What an agent is told when a person wants it to go on with a turn that has ended (T14)."""
    if request.startswith(_AGAIN):
        # It was gone on with before: what counts is what was asked for in the beginning.
        request = request.partition(_REQUEST)[2]
    items = "".join(f"\n- {visible(item.title)}" for item in left)
    unfinished = f"\n\nThese were not finished:{items}" if items else ""
    return (
        f"{_AGAIN}the turn before this one ended ({visible(ended)}). See first what has been done "
        f"already, then plan what is left.{unfinished}{_REQUEST}{request}"
    )
