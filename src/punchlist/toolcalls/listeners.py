"""What the scheduler reports to: listeners, the journal, and the person who answers questions."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from punchlist.errors import Conflict, InvalidInput
from punchlist.kernel.events import Actor
from punchlist.toolcalls.approvals import ApprovalAnswer
from punchlist.toolcalls.model import CompletedToolCall, ToolCall, Transition, WaitingToolCall
from punchlist.toolcalls.policy import Rule

_LOG: Final = logging.getLogger(__name__)

AskPerson = Callable[[WaitingToolCall, str | None], Awaitable[ApprovalAnswer | None]]
"""Asks a person about one call at a time. It is called again, with the problem, when the answer was not usable.
None means that there was no answer: the call keeps waiting."""


class AnsweredElsewhere(Conflict):
    """Another process recorded an answer first, and that answer ends the call."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Functions that receive what happens to calls. A listener that fails is logged; it never stops a call.

    A listener is called in the middle of a step and must return at once, so it cannot be asynchronous.
    """

    on_tool_calls_update: Callable[[Sequence[ToolCall]], Any] | None = None
    """Receives the calls that have changed, after each change."""
    on_all_tool_calls_complete: Callable[[Sequence[CompletedToolCall]], Any] | None = None
    """Receives the calls that have ended since the last time, when no call is open."""
    on_transition: Callable[[Transition], Any] | None = None
    on_output: Callable[[str, str], Any] | None = None
    """Receives live output: call id and text."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            listener = getattr(self, name)
            if listener is not None and _is_asynchronous(listener):
                raise InvalidInput(
                    f"{name}: must be a plain function, since a listener is not awaited. For asynchronous work, start "
                    "a task in it, such as with asyncio.get_running_loop().create_task(…)."
                )

    def changed(self, transition: Transition) -> None:
        # Compared here: this runs several times for each call, and most listeners are not set.
        if self.on_transition is not None:
            _notify(self.on_transition, transition)
        if self.on_tool_calls_update is not None:
            _notify(self.on_tool_calls_update, (transition.call,))

    def completed(self, calls: Sequence[CompletedToolCall]) -> None:
        _notify(self.on_all_tool_calls_complete, calls)

    def output(self, call_id: str, text: str) -> None:
        _notify(self.on_output, call_id, text)


def _is_asynchronous(listener: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(type(listener).__call__)


def _notify(listener: Callable[..., Any] | None, *arguments: Any) -> None:
    try:
        if listener is not None and inspect.iscoroutine(coroutine := listener(*arguments)):
            coroutine.close()
            raise TypeError("it returned a coroutine, which is not awaited; a listener must be a plain function")
    except Exception:
        _LOG.exception("a listener of tool calls failed")


class Journal(Protocol):
    """Stores every transition. Recording returns at once; `flushed` waits until the records are stored."""

    def record(self, transition: Transition) -> None: ...

    def record_rules(self, rules: Sequence[Rule], actor: Actor) -> None:
        """Record the rules of an "always" answer."""

    async def flushed(self, call_id: str | None = None) -> None:
        """Raises StoreError when storing failed, and Conflict when another process owns `call_id` now."""

    async def answers(self, call_ids: Sequence[str]) -> Sequence[tuple[str, ApprovalAnswer]]:
        """Answers to these calls that other processes recorded since the last call."""

    def escalate(self, call: WaitingToolCall) -> None:
        """Ask in the conversation: the question was not answered in time."""
