"""The messages of a model request: a prefix that does not change within a turn, the turn so far, the list state.

    system · tools · [earlier turns] · the request · … this turn … · the state

Only the end differs between two requests, so that providers can cache the prefix. The request and the
lists are always present, whatever has been compacted (T11). Compaction replaces the older messages of a long
turn by a summary (C7); it is built from the calls and their results, without a model, so it cannot invent
anything. Stored messages stay unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from punchlist.agent.transcript import drop_unpaired_calls
from punchlist.kernel.text import visible
from punchlist.models.model import CallReturn, Message, ModelRequest, Reply, ToolOffer, UserText

RECENT_MESSAGES: Final = 12
"""Messages at the end that are never summarized."""
_MAX_LINE_LENGTH: Final = 200


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


# --- compaction -------------------------------------------------------------------------------------------


def compact(messages: Sequence[Message], limit: int) -> list[Message]:
    """About `limit` messages at most: the first (the request), a summary, and the recent ones.

    The cut never separates a call from its result.
    """
    if len(messages) <= limit:
        return list(messages)
    cut = len(messages) - min(RECENT_MESSAGES, limit - 2)
    while cut < len(messages) and isinstance(messages[cut], CallReturn):
        cut += 1
    # The last reply stays with its results: the model has not read them yet, and some may be missing.
    cut = min(cut, _last_reply(messages))
    if cut <= 1:
        return list(messages)
    first, older, recent = messages[0], messages[1:cut], messages[cut:]
    return [first, UserText(summary(older)), *recent]


def _last_reply(messages: Sequence[Message]) -> int:
    """The index of the last reply; the length if there is no reply."""
    replies = (number for number in reversed(range(len(messages))) if isinstance(messages[number], Reply))
    return next(replies, len(messages))


def summary(messages: Sequence[Message]) -> str:
    lines = [line for message in messages if (line := _line(message))]
    return "\n".join([f"Summary of the {len(messages)} earlier messages:", *lines])


def _line(message: Message) -> str:
    match message:
        case UserText(text):
            return f"- user: {_short(text)}"
        case CallReturn():
            return f"- {message.tool} {'failed' if message.failed else 'returned'}: {_short(message.text)}"
        case Reply(text=text, calls=calls):
            spoken = [f"- you: {_short(text)}"] if text.strip() else []
            called = [f"- you called {call.tool} {_short(_arguments(call.arguments))}" for call in calls]
            return "\n".join(spoken + called)


def _arguments(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _short(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= _MAX_LINE_LENGTH else line[: _MAX_LINE_LENGTH - 1] + "…"
