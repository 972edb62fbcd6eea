"""A turn on record: every message as it is said, and why the turn ended."""

from __future__ import annotations

from typing import Protocol

from punchlist.agent.continuation import Reason
from punchlist.agent.transcript import TEXT, as_row
from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel.text import visible
from punchlist.models.model import Message
from punchlist.storage.bridge import Aside


def trail_line(reason: str) -> str:
    """On one line: what ends a turn may have been said by a provider, or by anybody."""
    return visible(" ".join(reason.split()))


class Record(Protocol):
    async def add(self, *messages: Message, kind: str = TEXT) -> None: ...

    async def end(self, reason: Reason, why: str) -> None: ...


class StoredRecord:
    def __init__(self, conversations: Conversations, scope: TurnScope, aside: Aside) -> None:
        self._conversations = conversations
        self._aside = aside
        self._scope = scope

    async def add(self, *messages: Message, kind: str = TEXT) -> None:
        rows = [as_row(message, kind) for message in messages]
        await self._aside(self._conversations.say_all, self._scope, self._scope.turn_id, rows)

    async def end(self, reason: Reason, why: str) -> None:
        told = trail_line(f"{reason}: {why}")
        await self._aside(self._conversations.close_turn, self._scope, self._scope.turn_id, reason=told)
