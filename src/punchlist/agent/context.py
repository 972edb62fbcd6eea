"""What a model is sent: a prefix that does not change within a turn, what was said, and the present state.

    system · tools · [earlier turns] · the request · … this turn … · the state

Only what comes last differs from one request to the next, so that providers can keep what they have
read. The request is always there, and so are the lists, whatever else has been left out (T11).
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
    """The last messages of the turns before this one."""
    compact_after: int = 50
    first: bool = True
    """There was no turn before this one in its session."""
    messages: list[Message] = field(default_factory=list)
    """This turn's, from the request on."""

    def add(self, *messages: Message) -> None:
        self.messages.extend(messages)
        if len(self.messages) > self.compact_after:
            # Rarely, and then by much: each time, providers have to read it anew.
            self.messages = compact(self.messages, self.compact_after // 2)

    def request(self, state: str, max_tokens: int | None = None) -> ModelRequest:
        said = [*self.earlier, *self.messages]
        if state:
            said.append(UserText(state))
        return ModelRequest(self.system, said, self.tools, max_tokens)


def recent_messages(messages: Sequence[Message], most: int) -> list[Message]:
    """The end of what was said before, beginning with no result of a call that is left out."""
    recent = list(messages[-most:]) if most else []
    while recent and isinstance(recent[0], CallReturn):
        recent.pop(0)
    return drop_unpaired_calls(recent)


def state_text(lists: str, reminder: str = "") -> str:
    parts = [part for part in (lists, reminder) if part]
    return f"<state>\n{chr(10).join(parts)}\n</state>" if parts else ""
