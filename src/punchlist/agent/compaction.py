"""Decisions of compaction: which messages stay, how long a result may be, and the stored record of a compaction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.kernel.events import compact_encoder
from punchlist.models.model import CallReturn, Message, Reply, UserText

RECENT_MESSAGES: Final = 12
"""Messages at the end that stay as they are, if they are not too long."""
RECENT_SHARE: Final = 0.25
"""Of the context window: the length of the messages that stay."""
SUMMARY_SHARE: Final = 0.15
RESULT_SHARE: Final = 0.2
"""Of the context window: the longest result of a call."""
RESULTS_SHARE: Final = 0.4
"""Of the context window: all results of one reply."""
MIN_GAIN: Final = 0.05
"""Of the context window: what a compaction must remove. Each one costs the provider's cache."""
CHARACTERS_PER_TOKEN: Final = 4
MIN_RATE: Final = 0.125
MAX_RATE: Final = 1.5
"""Bounds for the tokens of a character, if what the model reports does not fit the request."""
DEFAULT_SUMMARY_LENGTH: Final = 40_000
MIN_SUMMARY_LENGTH: Final = 4_000
_ENCODE: Final = compact_encoder(ensure_ascii=False, sort_keys=False)
_MIN_RESULT_LENGTH: Final = 400
_KEPT: Final = re.compile(r"\AContext compacted: .*, the last (\d+) stay\b")
_FULL_TEXT: Final = re.compile(r"; the full text is in ([^\n\]]+)\]")


@dataclass(frozen=True, slots=True)
class Compaction:
    """What one compaction has done."""

    before_tokens: int
    after_tokens: int
    messages: int
    """Messages replaced by the summary."""
    kept: int
    """Messages at the end that stay as they are."""
    summary: str

    @property
    def text(self) -> str:
        """For people. A resumed turn reads from it how many messages stayed."""
        return (
            f"Context compacted: a summary replaces {self.messages} messages, the last {self.kept} stay "
            f"(about {self.before_tokens:,} → {self.after_tokens:,} tokens).\n\n{self.summary}"
        )


def kept_messages(record: str) -> int | None:
    """The messages that a stored compaction kept; None if the record cannot be read."""
    found = _KEPT.match(record)
    return int(found[1]) if found else None


def json_length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(_ENCODE(value))


def message_length(message: Message) -> int:
    """In characters, including reasoning."""
    match message:
        case Reply():
            calls = sum(len(call.tool) + json_length(call.arguments) for call in message.calls)
            parts = message.provider_parts.parts if message.provider_parts is not None else ()
            return len(message.text) + calls + sum(len(part.text) + len(part.signature or "") for part in parts)
        case UserText(text=text) | CallReturn(text=text):
            return len(text)


def messages_to_keep(messages: Sequence[Message], most: int, max_length: int | None) -> int:
    """How many messages at the end stay: at most about `most`, of `max_length` characters together.

    The last reply always stays with what follows it: the model has not read its results yet. The first message
    that stays is never a result, so that no call is separated from its result.
    """
    cut = _last_reply(messages)
    length = sum(map(message_length, messages[cut:]))
    start = cut
    while start > 1 and len(messages) - start < most:
        length += message_length(messages[start - 1])
        if max_length is not None and length > max_length:
            break
        start -= 1
    while start < cut and isinstance(messages[start], CallReturn):
        start += 1
    return len(messages) - start


def _last_reply(messages: Sequence[Message]) -> int:
    """The index of the last reply; the length if there is no reply."""
    replies = (number for number in reversed(range(len(messages))) if isinstance(messages[number], Reply))
    return next(replies, len(messages))


def shorten_results(results: Sequence[CallReturn], window: int | None) -> list[CallReturn]:
    """The results of one reply, without the middle of those that are too long for the context window."""
    if window is None or not results:
        return list(results)
    size = window * CHARACTERS_PER_TOKEN
    limit = int(size * RESULT_SHARE)
    if sum(min(len(result.text), limit) for result in results) > size * RESULTS_SHARE:
        limit = _fair_limit([len(result.text) for result in results], int(size * RESULTS_SHARE))
    return [_shortened(result, max(limit, _MIN_RESULT_LENGTH)) for result in results]


def _fair_limit(lengths: Sequence[int], total: int) -> int:
    """The length for which the results fit into `total`; shorter ones leave their rest to the others."""
    rest, many = total, len(lengths)
    for length in sorted(lengths):
        if length > rest // many:
            break
        rest -= length
        many -= 1
    return rest // max(many, 1)


def _shortened(result: CallReturn, limit: int) -> CallReturn:
    text = result.text
    if len(text) <= limit:
        return result
    file = _FULL_TEXT.search(text)
    how = "with first_line and lines" if result.tool == "read_file" else "with narrower arguments"
    where = f"The full text is in {file[1]}" if file else f"Call {result.tool} again {how} to read it"
    head, tail = limit * 2 // 3, limit // 3
    note = f"[{len(text) - head - tail:,} characters left out: too long for the context window. {where}.]"
    return CallReturn(result.call_id, result.tool, f"{text[:head]}\n… {note} …\n{text[-tail:]}", result.failed)
