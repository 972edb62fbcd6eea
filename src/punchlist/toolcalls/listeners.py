"""Who is told what happens to calls. A listener that fails is logged; it never stops a call."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from punchlist.errors import Conflict
from punchlist.kernel.actors import Actor
from punchlist.toolcalls.approvals import ApprovalAnswer
from punchlist.toolcalls.model import CompletedToolCall, ToolCall, Transition, WaitingToolCall
from punchlist.toolcalls.policy import Rule

_LOG: Final = logging.getLogger(__name__)
_FAILED: Final = "a listener of tool calls failed"


@dataclass(frozen=True, slots=True)
class Listeners:
    on_tool_calls_update: Callable[[Sequence[ToolCall]], Any] | None = None
    """The calls that have changed, after each change."""
    on_all_tool_calls_complete: Callable[[Sequence[CompletedToolCall]], Any] | None = None
    """Everything that ended since the last time, once nothing is open any more."""
    on_transition: Callable[[Transition], Any] | None = None
    on_output: Callable[[str, str], Any] | None = None
    """Live output: the call's id and the text."""

    def changed(self, transition: Transition) -> None:
        # Written out, since it happens several times for every call.
        if self.on_transition is not None:
            try:
                self.on_transition(transition)
            except Exception:
                _LOG.exception(_FAILED)
        if self.on_tool_calls_update is not None:
            try:
                self.on_tool_calls_update((transition.call,))
            except Exception:
                _LOG.exception(_FAILED)

    def completed(self, calls: Sequence[CompletedToolCall]) -> None:
        if self.on_all_tool_calls_complete is not None:
            _tell(self.on_all_tool_calls_complete, calls)

    def output(self, call_id: str, text: str) -> None:
        if self.on_output is not None:
            _tell(self.on_output, call_id, text)


def _tell(listener: Callable[..., Any], *news: Any) -> None:
    try:
        listener(*news)
    except Exception:
        _LOG.exception(_FAILED)


AskPerson = Callable[[WaitingToolCall, str | None], Awaitable[ApprovalAnswer | None]]
"""Puts a question to a person, one at a time; again, with what was wrong, when the answer could not be used. None
means that they did not answer: the call goes on waiting."""


class AnsweredElsewhere(Conflict):
    """Somebody else's answer was first, and it ends the call."""


class Journal(Protocol):
    """Where every transition goes. Noting is instant; `settled` waits until what was noted is on record."""

    def record(self, transition: Transition) -> None: ...

    def record_rules(self, rules: Sequence[Rule], by: Actor) -> None:
        """What a person said "always" to."""

    async def flushed(self, call_id: str | None = None) -> None:
        """Raises a StoreError when the record could not be made, or when another process has `call_id` now."""

    async def answers(self, call_ids: Sequence[str]) -> Sequence[tuple[str, ApprovalAnswer]]:
        """Answers to these calls that were given elsewhere since it was last asked."""

    def escalate(self, call: WaitingToolCall) -> None:
        """Nobody has answered: tell a person in the conversation."""
