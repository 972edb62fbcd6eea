"""Who is told what happens to calls. A listener that fails is logged; it never stops a call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.toolcalls.states import CompletedToolCall, ToolCall, Transition

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
