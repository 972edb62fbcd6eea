"""Making a long turn short for the model: older messages become a summary, in storage they stay (C7).

No model is asked for it: what was called and what came of it is known, and a list of that does not
invent anything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from punchlist.kernel.text import visible
from punchlist.models.model import CallReturn, Message, Reply, UserText

KEPT: Final = 12
"""Messages that stay as they are, at the end."""
_LONGEST_LINE: Final = 200


def compact(messages: Sequence[Message], most: int) -> list[Message]:
    """At most about `most` messages: the first (the request), a summary, and the last ones.

    The cut is made where no call is separated from its result.
    """
    if len(messages) <= most:
        return list(messages)
    cut = len(messages) - min(KEPT, most - 2)
    while cut < len(messages) and isinstance(messages[cut], CallReturn):
        cut += 1
    # The last reply stays with its results: they have not been read yet, and some may still be to come.
    cut = min(cut, _last_reply(messages))
    if cut <= 1:
        return list(messages)
    first, older, recent = messages[0], messages[1:cut], messages[cut:]
    return [first, UserText(summary(older)), *recent]


def _last_reply(messages: Sequence[Message]) -> int:
    """Where it stands; at the end when there is none."""
    replies = (number for number in reversed(range(len(messages))) if isinstance(messages[number], Reply))
    return next(replies, len(messages))


def summary(messages: Sequence[Message]) -> str:
    lines = [line for message in messages if (line := _line(message))]
    return "\n".join([f"Summary of the {len(messages)} messages before these:", *lines])


def _line(message: Message) -> str:
    match message:
        case UserText(text):
            return f"- was told: {_short(text)}"
        case CallReturn():
            return f"- {message.tool} {'failed' if message.failed else 'gave'}: {_short(message.text)}"
        case Reply(text=text, calls=calls):
            said = [f"- said: {_short(text)}"] if text.strip() else []
            called = [f"- called {call.tool} {_short(_arguments(call.arguments))}" for call in calls]
            return "\n".join(said + called)


def _arguments(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _short(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"
