"""What the scheduler needs to know of storage and of whoever asks a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from punchlist.errors import Conflict
from punchlist.kernel.actors import Actor
from punchlist.toolcalls.approvals import ApprovalAnswer
from punchlist.toolcalls.policy import Rule
from punchlist.toolcalls.states import Transition, WaitingToolCall

Ask = Callable[[WaitingToolCall, str | None], Awaitable[ApprovalAnswer | None]]
"""Puts a question to a person, one at a time; again, with what was wrong, when the answer could not be used. None
means that they did not answer: the call goes on waiting."""


class AnsweredElsewhere(Conflict):
    """Somebody else's answer was first, and it ends the call."""


class Journal(Protocol):
    """Where every transition goes. Noting is instant; `settled` waits until what was noted is on record."""

    def note(self, transition: Transition) -> None: ...

    def note_rules(self, rules: Sequence[Rule], by: Actor) -> None:
        """What a person said "always" to."""

    async def settled(self, call_id: str | None = None) -> None:
        """Raises a StoreError when the record could not be made, or when another process has `call_id` now."""

    async def answers(self, call_ids: Sequence[str]) -> Sequence[tuple[str, ApprovalAnswer]]:
        """Answers to these calls that were given elsewhere since it was last asked."""

    def escalate(self, call: WaitingToolCall) -> None:
        """Nobody has answered: tell a person in the conversation."""
