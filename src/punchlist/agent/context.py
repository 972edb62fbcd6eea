"""The messages of a model request: a prefix that does not change within a turn, the turn so far, the list state.

    system · tools · [earlier turns] · the request · … this turn … · the state

Only the end differs between two requests, so that providers can cache the prefix. The request and the
lists are always present, whatever has been compacted (T11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from punchlist.agent.compaction import compact
from punchlist.agent.transcript import drop_unpaired_calls
from punchlist.models.model import CallReturn, Message, ModelRequest, ToolOffer, UserText


@dataclass(slots=True)
class ModelContext:
    system: str
    tools: Sequence[ToolOffer]
    earlier: Sequence[Message] = ()
    """The last messages of earlier turns."""
    compact_after: int = 50
    first_turn: bool = True
    """This is the first turn of its session."""
    messages: list[Message] = field(default_factory=list)
    """The messages of this turn, starting with the request."""

    def add(self, *messages: Message) -> None:
        self.messages.extend(messages)
        if len(self.messages) > self.compact_after:
            # Compacting invalidates the provider's cache, so it happens rarely and removes half.
            self.messages = compact(self.messages, self.compact_after // 2)

    def request(self, state: str) -> ModelRequest:
        messages = [*self.earlier, *self.messages]
        if state:
            messages.append(UserText(state))
        return ModelRequest(self.system, messages, self.tools)


def recent_messages(messages: Sequence[Message], limit: int) -> list[Message]:
    """The last messages, without results whose calls are cut off."""
    recent = list(messages[-limit:]) if limit else []
    while recent and isinstance(recent[0], CallReturn):
        recent.pop(0)
    return drop_unpaired_calls(recent)


def state_text(lists: str, reminder: str = "") -> str:
    parts = [part for part in (lists, reminder) if part]
    return f"<state>\n{chr(10).join(parts)}\n</state>" if parts else ""
