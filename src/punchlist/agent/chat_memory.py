"""What an agent remembers of a chat that it shares with others: a running summary, then the newest messages (M10).

    [summary of everything older] · turn · notice · turn · notice

The agent sees its own turns, each as request and answer, and the notices for all. Nothing is cut by number: when they
exceed `RECENT_LENGTH`, the older half is folded into the summary, which is stored, so that it changes seldom
and the provider's cache holds. A chat without a stored summary, or with one that cannot be read, is summarised again
from its start; a summary that cannot be stored is used and built again in the next turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from punchlist.agent.answer import AnswerText
from punchlist.agent.chat_summary import (
    NOTICE_KINDS,
    ChatSummary,
    FoldedEntry,
    Span,
    clean_cut,
    decode_summary,
    entries_to_fold,
)
from punchlist.agent.context import message_length
from punchlist.agent.earlier_turns import WINDOW_SHARE, turn_messages
from punchlist.agent.transcript import from_stored
from punchlist.conversations.model import ChatEntry
from punchlist.conversations.service import Conversations
from punchlist.errors import PunchlistError, StoreDamaged
from punchlist.kernel.text import one_line
from punchlist.kernel.token_estimate import CHARACTERS_PER_TOKEN
from punchlist.models.model import Message, Reply, UserText

RECENT_LENGTH: Final = 24_000
"""Weighted length of the messages that stay as they are."""
SUMMARY_LENGTH: Final = 12_000
MAX_PROMPT_LENGTH: Final = 500
"""Of a request that the program wrote: its data is outdated, the state of the mission is in every request."""
MAX_TEXT_LENGTH: Final = 4_000
PAGE: Final = 1_000
_CONTINUED: Final = "(An earlier turn, which had waited, was continued.)"
_UNREADABLE: Final = "(this entry cannot be read)"


class _Remembered(NamedTuple):
    """A turn or a notice."""

    span: Span
    messages: list[Message]
    folded: FoldedEntry
    is_turn: bool


class ChatMemory:
    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    def messages(self, conversation_id: str, agent: str, turn_id: str, window: int | None) -> list[Message]:
        """The chat before a turn, for its requests."""
        recent, summary_length = RECENT_LENGTH, SUMMARY_LENGTH
        if window is not None:
            share = int(window * WINDOW_SHARE * CHARACTERS_PER_TOKEN)
            recent, summary_length = min(recent, share), min(summary_length, share)
        summary, position = self._stored(conversation_id, agent)
        before = self._conversations.first_position(turn_id)
        page, size = self._page(conversation_id, agent, position, turn_id, PAGE), PAGE
        while len(page) == size:
            # The last turn of a full page can be incomplete. So can one that waited; its rest is an entry of its own.
            entries = _remembered(page)
            turns = [number for number, entry in enumerate(entries) if entry.is_turn]
            count = clean_cut([entry.span for entry in entries], turns[-1] if turns else len(entries))
            if count:
                summary, position = self._fold(conversation_id, agent, summary, entries[:count])
            else:
                size *= 4
            page = self._page(conversation_id, agent, position, turn_id, size)
        entries = _remembered(page)
        if count := entries_to_fold([entry.span for entry in entries], recent, before):
            summary, _ = self._fold(conversation_id, agent, summary, entries[:count])
            entries = entries[count:]
        over = sum(entry.span.length for entry in entries) - recent
        while over > 0 and entries:
            # Overlaps with the current turn: part of the text now, folded for good by a later turn.
            over -= entries[0].span.length
            summary, entries = summary.extended([entries[0].folded]), entries[1:]
        text = summary.text(summary_length)
        shown = [message for entry in entries for message in entry.messages]
        return [UserText(text, from_person=False), *shown] if text else shown

    def _stored(self, conversation_id: str, agent: str) -> tuple[ChatSummary, int]:
        stored = self._conversations.summary(conversation_id, agent)
        summary = decode_summary(stored.content) if stored is not None else None
        return (summary, stored.position) if stored is not None and summary is not None else (ChatSummary(), 0)

    def _page(self, conversation_id: str, agent: str, after: int, turn_id: str, size: int) -> list[ChatEntry]:
        return self._conversations.entries_of_agent(conversation_id, agent, after, turn_id, size)

    def _fold(
        self, conversation_id: str, agent: str, summary: ChatSummary, entries: Sequence[_Remembered]
    ) -> tuple[ChatSummary, int]:
        extended = summary.extended([entry.folded for entry in entries])
        position = max(entry.span.last for entry in entries)
        # Without it, the next turn builds the summary again.
        with suppress(PunchlistError):
            self._conversations.save_summary(conversation_id, agent, position, extended.encode())
        return extended, position


def _remembered(page: Sequence[ChatEntry]) -> list[_Remembered]:
    """Turns and notices in the order of their first messages."""
    groups: dict[str, list[ChatEntry]] = {}
    for entry in page:
        groups.setdefault(entry.message.turn_id or entry.message.id, []).append(entry)
    return [_remember(group) for group in groups.values()]


def _remember(group: Sequence[ChatEntry]) -> _Remembered:
    first, turn = group[0].message, group[0].turn
    try:
        messages = turn_messages(group, MAX_TEXT_LENGTH) or _rest_of_turn(group)
    except StoreDamaged:
        messages = [UserText(_UNREADABLE, from_person=False)]
    by_program = first.turn_id is not None and first.kind in NOTICE_KINDS
    answer = "\n".join(message.text for message in messages if isinstance(message, Reply))
    if by_program and messages and isinstance(messages[0], UserText):
        messages[0] = UserText(one_line(messages[0].text, MAX_PROMPT_LENGTH), from_person=False)
    request = "" if by_program or not messages else _request(group, messages)
    # A turn that waits may go on months later. What it says then is an entry of its own.
    last = first if turn is not None and turn.open else group[-1].message
    span = Span(first.position, last.position, sum(map(message_length, messages)))
    return _Remembered(span, messages, FoldedEntry(first.created_at, first.kind, request, answer), bool(first.turn_id))


def _rest_of_turn(group: Sequence[ChatEntry]) -> list[Message]:
    """What a turn said after its beginning was folded."""
    answer = AnswerText()
    for entry in group:
        if isinstance(message := from_stored(entry.message), Reply):
            answer.add(message)
    return (
        [UserText(_CONTINUED, from_person=False), Reply(one_line(answer.text, MAX_TEXT_LENGTH))] if answer.text else []
    )


def _request(group: Sequence[ChatEntry], messages: Sequence[Message]) -> str:
    """A notice as it was posted, or what people wrote in a turn."""
    if group[0].turn is None:
        return group[0].message.content
    return next((message.text for message in messages if isinstance(message, UserText)), "")
