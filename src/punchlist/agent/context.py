"""The messages of a model request: a prefix that does not change within a turn, the turn so far, the list state.

    system · tools · [earlier turns] · the request · [summary] · … this turn … · the state

Only the end differs between two requests, so that providers can cache the prefix. The request and the
lists are always present, whatever has been compacted (T11). Compaction replaces the older messages of a long
turn by a cumulative summary (C7), before the request that would fill the context window. Stored messages stay
unchanged.

Lengths are weighted (`kernel/token_estimate.py`), so that they are in proportion to tokens in every script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

from punchlist.agent.context_summary import ContextSummary
from punchlist.kernel.events import compact_encoder
from punchlist.kernel.token_estimate import CHARACTERS_PER_TOKEN, weighted_length
from punchlist.models.model import CallReturn, Message, ModelRequest, Reply, ToolOffer, UserText
from punchlist.toolcalls.tool import AgentTool

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
    """Of `messages`."""
    _state_length: int = 0
    _fixed_length: int = 0
    _measured_tokens: int = 0
    """Tokens of the last request with its reply, as the model reported them; 0 if it reported none."""
    _measured_length: int = 0
    """Of that request and reply."""

    def __post_init__(self) -> None:
        self._fixed_length = weighted_length(self.system) + sum(map(offer_length, self.tools))
        self._fixed_length += sum(map(message_length, self.earlier))

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
        self._state_length = weighted_length(state)
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
        """Of the request, without the state."""
        return self._fixed_length + weighted_length(self._summary_text) + self._length

    def tokens(self, state: str) -> int:
        """An estimate of the next request: from the tokens that the model reported last, and what was added since."""
        length = self.length + weighted_length(state)
        if not self._measured_tokens:
            return length // CHARACTERS_PER_TOKEN
        rate = min(max(self._measured_tokens / max(self._measured_length, 1), MIN_RATE), MAX_RATE)
        if length < self._measured_length:
            return min(int(length * rate), self._measured_tokens)
        return self._measured_tokens + int((length - self._measured_length) * rate)

    # --- compaction ---------------------------------------------------------------------------------------

    def compact(self, state: str, *, refused: bool = False) -> Compaction | None:
        """Compact older messages if the next request would be too long; None if there is nothing to do.

        `refused`: the model has refused it as too long, so its context window is smaller than was known.
        """
        before = self.tokens(state)
        if refused:
            self.window = min(self.window or before, before)
        window = self.window
        too_many = refused or len(self.messages) > self.compact_after
        if not too_many and (window is None or before < self.compact_at * window):
            return None
        size = self.length + weighted_length(state)
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


# --- what compaction decides ------------------------------------------------------------------------------


def kept_messages(record: str) -> int | None:
    """The messages that a stored compaction kept; None if the record cannot be read."""
    found = _KEPT.match(record)
    return int(found[1]) if found else None


def json_length(value: Any) -> int:
    return weighted_length(value if isinstance(value, str) else _ENCODE(value))


def offer_length(tool: ToolOffer) -> int:
    return len(tool.name) + weighted_length(tool.description) + json_length(dict(tool.input_schema))


def message_length(message: Message) -> int:
    """Including reasoning."""
    match message:
        case Reply():
            calls = sum(len(call.tool) + json_length(call.arguments) for call in message.calls)
            parts = message.provider_parts.parts if message.provider_parts is not None else ()
            reasoning = sum(weighted_length(part.text) + len(part.signature or "") for part in parts)
            return weighted_length(message.text) + calls + reasoning
        case UserText(text=text) | CallReturn(text=text):
            return weighted_length(text)


def messages_to_keep(messages: Sequence[Message], most: int, max_length: int | None) -> int:
    """How many messages at the end stay: at most about `most`, of `max_length` together.

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
    lengths = [weighted_length(result.text) for result in results]
    if sum(min(length, limit) for length in lengths) > size * RESULTS_SHARE:
        limit = _fair_limit(lengths, int(size * RESULTS_SHARE))
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
    text, length = result.text, weighted_length(result.text)
    if length <= limit:
        return result
    # In characters of this text.
    limit = limit * len(text) // length
    file = _FULL_TEXT.search(text)
    how = "with first_line and lines" if result.tool == "read_file" else "with narrower arguments"
    where = f"The full text is in {file[1]}" if file else f"Call {result.tool} again {how} to read it"
    head, tail = limit * 2 // 3, limit // 3
    note = f"[{len(text) - head - tail:,} characters left out: too long for the context window. {where}.]"
    return CallReturn(result.call_id, result.tool, f"{text[:head]}\n… {note} …\n{text[-tail:]}", result.failed)


# --- tool definitions -------------------------------------------------------------------------------------

_HIDDEN_FIELDS: Final = {
    "TodoWrite": {"metric", "timeout"},
    "create_todo": {"order", "blockedBy", "resources", "agentType", "metric", "timeout"},
    "list_todo": {"limit", "cursor"},
    "start_todo": {"fence"},
    "complete_todo": {"fence"},
    "delegate": {"rationale"},
}
_HIDDEN_KEYWORDS: Final = frozenset(
    {
        "additionalProperties",
        "default",
        "title",
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum"),
    }
)
_DESCRIPTIONS: Final = {
    # The system prompt says how to use it.
    "TodoWrite": "Replace the checklist: send every item.",
    "create_todo": "Add items to your plan, all in one call.",
    "list_todo": "Your plan in full, with answers received. The state shows the open items already.",
    "start_todo": "Mark an item as in progress. One at a time.",
    "complete_todo": "End an item: completed, cancelled (outcome: the reason) or failed (outcome: the error).",
    "wait_todo": "Make an item wait for one of: person (a question), time (ISO 8601), event (a name), todo (an item).",
    "delegate": "Give a mission to a worker and wait for its report.",
}
_FIELD_DESCRIPTIONS: Final = {"todoId": "Number or id", "person": None, "time": None, "event": None, "todo": None}
"""In place of the tool's own; None for none."""


def tool_offers(tools: Iterable[AgentTool]) -> list[ToolOffer]:
    """The definitions of tools as our own agents see them: short, since every request carries them.

    A definition is the tool's own without what a model rarely needs. The tool still accepts the hidden fields and
    checks the bounds that are left out here. Other clients, over MCP, see the full definitions.
    """
    return [_offer(tool) for tool in tools]


def _offer(tool: AgentTool) -> ToolOffer:
    if tool.server is not None:
        # Written by others, for any client.
        return ToolOffer(tool.name, tool.description, tool.input_schema)
    description = _DESCRIPTIONS.get(tool.name, " ".join(tool.description.split()))
    return ToolOffer(tool.name, description, _short_schema(tool.input_schema, _HIDDEN_FIELDS.get(tool.name, set())))


def _short_schema(schema: Mapping[str, Any], hidden: set[str]) -> dict[str, Any]:
    short: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _HIDDEN_KEYWORDS or (key == "required" and not value):
            continue
        if key == "properties":
            short[key] = {
                name: _short_field(name, field, hidden) for name, field in value.items() if name not in hidden
            }
        elif key == "anyOf":
            kinds = [_short_schema(kind, hidden) for kind in value if kind != {"type": "null"}]
            # An object says more than the short form that the tool accepts beside it.
            objects = [kind for kind in kinds if kind.get("type") == "object"]
            short |= (objects or kinds)[0] if objects or len(kinds) == 1 else {key: kinds}
        else:
            short[key] = _short_schema(value, hidden) if isinstance(value, Mapping) else value
    return short


def _short_field(name: str, schema: Mapping[str, Any], hidden: set[str]) -> dict[str, Any]:
    short = _short_schema(schema, hidden)
    if name in _FIELD_DESCRIPTIONS:
        short.pop("description", None)
        short |= {"description": text} if (text := _FIELD_DESCRIPTIONS[name]) else {}
    return short
