"""The messages of a model request: a prefix that does not change within a turn, the turn so far, the list state.

    system · tools · [earlier turns] · the request · [summary] · … this turn … · the state

Only the end differs between two requests, so that providers can cache the prefix. The request and the
lists are always present, whatever has been compacted (T11). Compaction replaces the older messages of a long
turn by a cumulative summary (C7), before the request that would fill the context window. Stored messages stay
unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

from punchlist.agent.compaction import (
    CHARACTERS_PER_TOKEN,
    DEFAULT_SUMMARY_LENGTH,
    MAX_RATE,
    MIN_GAIN,
    MIN_RATE,
    MIN_SUMMARY_LENGTH,
    RECENT_MESSAGES,
    RECENT_SHARE,
    SUMMARY_SHARE,
    Compaction,
    json_length,
    message_length,
    messages_to_keep,
    shorten_results,
)
from punchlist.agent.context_summary import ContextSummary
from punchlist.models.model import CallReturn, Message, ModelRequest, Reply, ToolOffer, UserText


@dataclass(slots=True)
class ModelContext:
    system: str
    tools: Sequence[ToolOffer]
    earlier: Sequence[Message] = ()
    """Earlier turns."""
    compact_after: int = 50
    """Messages of the turn before older ones are compacted."""
    first_turn: bool = True
    """This is the first turn of its session."""
    window: int | None = None
    """The context window of the model in tokens; None if unknown."""
    compact_at: float = 0.7
    """The share of the context window at which older messages are compacted."""
    messages: list[Message] = field(default_factory=list)
    """The messages of this turn that are not compacted, starting with the request."""
    summary: ContextSummary = field(default_factory=ContextSummary)
    _summary_text: str = ""
    _length: int = 0
    """Characters of `messages`."""
    _state_length: int = 0
    _fixed_length: int = 0
    _measured_tokens: int = 0
    """Tokens of the last request with its reply, as the model reported them; 0 if it reported none."""
    _measured_length: int = 0
    """The characters of that request and reply."""

    def __post_init__(self) -> None:
        offers = sum(
            len(tool.name) + len(tool.description) + json_length(dict(tool.input_schema)) for tool in self.tools
        )
        self._fixed_length = len(self.system) + offers + sum(map(message_length, self.earlier))

    def add(self, *messages: Message) -> None:
        results: list[CallReturn] = []
        for message in messages:
            if isinstance(message, CallReturn):
                results.append(message)
                continue
            self._append(shorten_results(results, self.window))
            results = []
            self._append([message])
            if isinstance(message, Reply) and message.usage.input_tokens:
                self._measured_tokens = message.usage.total
                self._measured_length = self.length + self._state_length
        self._append(shorten_results(results, self.window))

    def restore(self, messages: Sequence[Message], compactions: Sequence[tuple[int, int]]) -> None:
        """Add the messages of an interrupted turn, compacted as they were. `compactions`: after how many, kept."""
        added = 0
        for position, kept in compactions:
            self.add(*messages[added:position])
            self.replace_older(kept)
            added = position
        self.add(*messages[added:])

    def _append(self, messages: Sequence[Message]) -> None:
        self.messages.extend(messages)
        self._length += sum(map(message_length, messages))

    def request(self, state: str) -> ModelRequest:
        self._state_length = len(state)
        first, rest = self.messages[:1], self.messages[1:]
        summary = [UserText(self._summary_text)] if self._summary_text else []
        messages = [*self.earlier, *first, *summary, *rest]
        stable = len(messages)
        if state:
            messages.append(UserText(state))
        return ModelRequest(self.system, messages, self.tools, stable=stable)

    # --- size ---------------------------------------------------------------------------------------------

    @property
    def length(self) -> int:
        """Characters of the request, without the state."""
        return self._fixed_length + len(self._summary_text) + self._length

    def tokens(self, state: str) -> int:
        """An estimate of the next request: from the tokens that the model reported last, and what was added since."""
        length = self.length + len(state)
        if not self._measured_tokens:
            return length // CHARACTERS_PER_TOKEN
        rate = min(max(self._measured_tokens / max(self._measured_length, 1), MIN_RATE), MAX_RATE)
        if length < self._measured_length:
            return min(int(length * rate), self._measured_tokens)
        return self._measured_tokens + int((length - self._measured_length) * rate)

    # --- compaction ---------------------------------------------------------------------------------------

    def compact(self, state: str) -> Compaction | None:
        """Compact older messages if the next request would be too long; None if there is nothing to do."""
        before, window = self.tokens(state), self.window
        too_many = len(self.messages) > self.compact_after
        if not too_many and (window is None or before < self.compact_at * window):
            return None
        size = self.length + len(state)
        per_token = size / max(before, 1)
        longest = None if window is None else int(window * RECENT_SHARE * per_token)
        kept = messages_to_keep(self.messages, min(RECENT_MESSAGES, self.compact_after // 2 - 2), longest)
        older = self.messages[1 : len(self.messages) - kept]
        removed = sum(map(message_length, older)) / per_token
        if not older or (not too_many and window is not None and removed < MIN_GAIN * window):
            return None
        self.replace_older(kept)
        return Compaction(before, self.tokens(state), len(older), kept, self._summary_text)

    def tokens_if_compacted(self, state: str) -> int | None:
        """The estimated tokens of the next request if a compaction will precede it; None if none will."""
        trial = copy(self)
        return None if trial.compact(state) is None else trial.tokens(state)

    def replace_older(self, kept: int) -> None:
        """Replace the messages between the request and the last `kept` ones by the summary."""
        older = self.messages[1 : len(self.messages) - kept]
        if not older:
            return
        self.summary = self.summary.extended(older)
        limit = DEFAULT_SUMMARY_LENGTH
        if self.window is not None:
            share = int(self.window * SUMMARY_SHARE * CHARACTERS_PER_TOKEN)
            limit = max(min(share, DEFAULT_SUMMARY_LENGTH), MIN_SUMMARY_LENGTH)
        self._summary_text = self.summary.text(limit)
        self.messages = [*self.messages[:1], *self.messages[len(self.messages) - kept :]]
        self._length = sum(map(message_length, self.messages))


def state_text(lists: str, reminder: str = "") -> str:
    parts = [part for part in (lists, reminder) if part]
    return f"<state>\n{chr(10).join(parts)}\n</state>" if parts else ""
