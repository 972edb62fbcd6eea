"""Replace the older messages of a long turn by a summary for the model (C7). Stored messages stay unchanged.

The summary is built from the calls and their results, without a model, so it cannot invent anything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from punchlist.kernel.text import visible
from punchlist.models.model import CallReturn, Message, Reply, UserText

RECENT_MESSAGES: Final = 12
"""Messages at the end that are never summarized."""
_MAX_LINE_LENGTH: Final = 200


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
