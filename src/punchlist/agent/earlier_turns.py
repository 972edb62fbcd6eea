"""Earlier turns of a session in the context: each as its request and its answer (T11).

Calls, continuations and reminders of a turn that is over are left out: they are orders about lists that no longer
exist. How a turn ended is part of its answer, unless it was completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from punchlist.agent.answer import AnswerText
from punchlist.agent.context import message_length
from punchlist.agent.continuation import Reason
from punchlist.agent.resume import is_continuation, original_request
from punchlist.agent.transcript import from_stored
from punchlist.conversations.model import ChatEntry, StoredTurn
from punchlist.kernel.text import one_line
from punchlist.kernel.token_estimate import CHARACTERS_PER_TOKEN
from punchlist.models.model import Message, Reply, UserText

WINDOW_SHARE: Final = 0.1
"""Of the context window, for all earlier turns."""
DEFAULT_LENGTH: Final = 40_000
"""If the window is unknown."""
THE_SAME: Final = "[An earlier turn on the request below.]"
MAX_TEXT_LENGTH: Final = 8_000
"""Of one request or answer."""


def earlier_messages(entries: Iterable[ChatEntry], limit: int, window: int | None, current: str = "") -> list[Message]:
    """The newest messages of earlier turns and notices, oldest first: at most `limit`, and a share of the window.

    `current` is the request of the current turn. If it continues an earlier one, their request is shown only there.
    """
    groups = groupby(entries, key=lambda entry: entry.message.turn_id or entry.message.id)
    rest = DEFAULT_LENGTH if window is None else int(window * WINDOW_SHARE * CHARACTERS_PER_TOKEN)
    chosen: list[Message] = []
    repeated = _bounded(original_request(current), MAX_TEXT_LENGTH) if is_continuation(current) else None
    for messages in reversed([turn_messages(list(group)) for _, group in groups]):
        if messages and messages[0].text == repeated:
            messages[0] = UserText(THE_SAME)
        rest -= sum(map(message_length, messages))
        if len(chosen) + len(messages) > limit or (rest < 0 and chosen):
            break
        chosen = [*messages, *chosen]
    return chosen


def turn_messages(entries: Sequence[ChatEntry], max_length: int = MAX_TEXT_LENGTH) -> list[Message]:
    """The request and the answer of one turn; or a notice that was posted outside of any turn."""
    messages = [message for entry in entries if (message := from_stored(entry.message)) is not None]
    requests = [message.text for message in messages if isinstance(message, UserText) and message.from_person]
    if not requests:
        # A turn of a third-party agent has no messages of ours.
        return []
    request = UserText(_bounded("\n\n".join([original_request(requests[0]), *requests[1:]]), max_length))
    turn = entries[0].turn
    if turn is None:
        return [request]
    answer = AnswerText()
    for message in messages:
        if isinstance(message, Reply):
            answer.add(message)
    parts = [part for part in (_bounded(answer.text, max_length), _ending(turn)) if part]
    return [request, Reply("\n\n".join(parts) or "[There was no answer.]")]


def _ending(turn: StoredTurn) -> str:
    if turn.open:
        return "[This turn is not finished.]"
    reason = one_line(turn.end_reason or "")
    return "" if reason.partition(":")[0] == Reason.COMPLETED else f"[This turn ended as {reason}]"


def _bounded(text: str, max_length: int) -> str:
    if len(text) <= max_length:
        return text
    half = max_length // 2
    return f"{text[:half]}\n… [{len(text) - 2 * half:,} characters left out] …\n{text[-half:]}"
