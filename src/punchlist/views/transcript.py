"""The transcript of a conversation: what people and agents said and did, a page at a time, newest page first.

Pages are cut by the positions of messages; the calls of a reply stand below it with their state and result, so that
entries do not depend on where a page begins. Nothing here reads a whole history.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from punchlist.agent import message_kinds
from punchlist.agent.resume import original_request
from punchlist.agent.transcript import from_stored
from punchlist.checklist.render import ICONS
from punchlist.checklist.service import UPDATE_KIND
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Conversation, Message, MessageRole, NoticeKind, StoredTurn
from punchlist.conversations.turn_writer import PAUSE
from punchlist.errors import InvalidInput, NotFound, StoreDamaged
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import excerpt
from punchlist.models.model import Reply, UserText
from punchlist.plan.person_changes import CHANGE_KIND
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.views import transcript_repository as repository
from punchlist.views.transcript_entries import (
    AgentText,
    CallApproval,
    CallCard,
    ListUpdate,
    PersonMessage,
    PostedNotice,
    QueuedText,
    QuietKind,
    QuietLine,
    TranscriptEntry,
    UpdatedItem,
)
from punchlist.views.transcript_repository import MAX_ARGUMENTS, MAX_RESULT, TranscriptCall

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 500
_END: Final = 2**31 - 1
_QUIET: Final[dict[str, QuietKind]] = {
    message_kinds.CONTINUATION: "continuation",
    message_kinds.RESUMED: "resumed",
    message_kinds.REMINDER: "reminder",
    message_kinds.COMPACTION: "compaction",
    message_kinds.GOAL: "goal",
    message_kinds.FINAL: "final_report",
    CHANGE_KIND: "plan_change",
    PAUSE: "paused",
}
_NOTICES: Final = frozenset(notice.value for notice in NoticeKind)
_PLAN_TOOLS: Final = frozenset({"create_todo", "start_todo", "wait_todo", "complete_todo"})
_CHECKLIST_TOOL: Final = "TodoWrite"
_STATUSES: Final = {icon: status.value for status, icon in ICONS.items()}
_DIFF: Final = "--- a/"
_Place = tuple[str, str | None, str | None, bool, int]
"""Time, turn, agent, whether a worker's, and position of an entry."""


@dataclass(frozen=True, slots=True)
class ConversationPage:
    conversation: Conversation
    entries: Sequence[TranscriptEntry]
    """Oldest first. On the newest page, the queued messages are last."""
    before: int | None
    """Give it as `before` for the page before this one; None if this is the first."""
    after: int
    """Give it as `after` for what is written later."""
    later: bool
    """Whether there are messages after this page."""

    def as_json(self) -> dict[str, Any]:
        return {
            "conversation": camel_json(self.conversation, "id", "title", "created_at"),
            "entries": [entry.as_json() for entry in self.entries],
            **camel_json(self, "before", "after", "later"),
        }


def read_transcript(
    store: Store,
    conversation_id: str,
    *,
    before: int | None = None,
    after: int | None = None,
    limit: int = DEFAULT_LIMIT,
) -> ConversationPage:
    """The newest page, the one before a position, or what follows a position. `limit` counts messages."""
    if before is not None and after is not None:
        raise InvalidInput("before, after: only one of them can be given")
    limit = max(1, min(limit, MAX_LIMIT))
    with store.read() as tx:
        conversation = conversation_repository.find_conversation(tx, conversation_id)
        if conversation is None:
            raise NotFound(f"There is no session {excerpt(conversation_id)!r}. `punchlist sessions` lists them.")
        near = {"conversation_id": conversation_id, "most": limit + 1}
        if after is not None:
            found = repository.messages_after(tx, position=after, **near)
            messages, earlier, later = found[:limit], True, len(found) > limit
        else:
            found = repository.messages_before(tx, position=_END if before is None else before, **near)
            messages, earlier, later = found[:limit][::-1], len(found) > limit, before is not None
        entries = list(_PageEntries(tx, conversation_id, messages))
        if not later:
            entries += _queued(tx, conversation_id)
    first = messages[0].position if messages and earlier else None
    last = messages[-1].position if messages else after or 0
    return ConversationPage(conversation, entries, first, last, later)


def _queued(tx: Transaction, conversation_id: str) -> Iterator[QueuedText]:
    for message in conversation_repository.queued_messages(tx, conversation_id, MAX_LIMIT):
        yield QueuedText(message.id, message.created_at, None, None, False, _END, message.content)


class _PageEntries:
    """The entries of consecutive messages."""

    def __init__(self, tx: Transaction, conversation_id: str, messages: Sequence[Message]) -> None:
        self._tx = tx
        self._conversation_id = conversation_id
        self._messages = messages
        ids = {message.turn_id for message in messages if message.turn_id is not None}
        self._turns = {id: turn for id in ids if (turn := conversation_repository.find_turn(tx, id)) is not None}
        self._parsed = [_parsed(message) for message in messages]
        self._calls = self._read_calls()
        self._ending = ""

    def __iter__(self) -> Iterator[TranscriptEntry]:
        top: StoredTurn | None = None
        last: Message | None = None
        for message, parsed in zip(self._messages, self._parsed, strict=True):
            turn = self._turns.get(message.turn_id or "")
            if turn is not None and turn.parent_turn_id is None and turn != top:
                yield from self._end(top, last)
                top = turn
            yield from self._of_message(message, parsed, turn)
            last = message
        if last is not None and self._turn_changes_after(last, top):
            yield from self._end(top, last)

    def _read_calls(self) -> dict[str, TranscriptCall]:
        """The calls of all replies, in one range of positions."""
        ids = [call.id for parsed in self._parsed if isinstance(parsed, Reply) for call in parsed.calls]
        if not ids:
            return {}
        positions = [
            position for id in (ids[0], ids[-1]) if (position := repository.call_position(self._tx, id)) is not None
        ]
        if len(positions) < 2:
            found = [call for id in ids if (call := repository.find_call(self._tx, id)) is not None]
        else:
            first, last = min(positions), max(positions)
            found = repository.calls_between(
                self._tx, conversation_id=self._conversation_id, first=first, last=max(last, first)
            )
        return {call.id: call for call in found}

    def _turn_changes_after(self, last: Message, top: StoredTurn | None) -> bool:
        """Whether the messages after the page belong to another turn at the top, or there are none."""
        following = repository.turn_after(self._tx, self._conversation_id, last.position)
        if following is None:
            return True
        turn = conversation_repository.find_turn(self._tx, following)
        return turn is not None and turn.parent_turn_id is None and (top is None or turn.id != top.id)

    def _end(self, turn: StoredTurn | None, last: Message | None) -> Iterator[QuietLine]:
        """How a turn ended."""
        if turn is None or turn.ended_at is None or last is None:
            return
        place = turn.ended_at, turn.id, turn.agent_id, False, last.position
        yield QuietLine(f"{turn.id}:end", *place, "turn_ended", turn.end_reason or "", self._ending)
        self._ending = ""

    def _of_message(
        self, message: Message, parsed: Reply | UserText | str, turn: StoredTurn | None
    ) -> Iterator[TranscriptEntry]:
        worker = turn is not None and turn.parent_turn_id is not None
        place = message.created_at, message.turn_id, turn.agent_id if turn else None, worker, message.position
        if isinstance(parsed, Reply):
            if parsed.text.strip():
                yield AgentText(message.id, *place, parsed.text)
            for requested in parsed.calls:
                call = self._calls.get(requested.id)
                # A change of the checklist has a message of its own.
                if call is not None and (call.tool, call.status) != (_CHECKLIST_TOOL, CallStatus.SUCCESS):
                    yield list_entry(call, turn, message.position) or call_entry(call, turn, message.position)
            return
        text = parsed.text if isinstance(parsed, UserText) else parsed
        if message.kind == message_kinds.ENDING and not worker:
            # Shown with the end of its turn.
            self._ending = text
        else:
            yield _text_entry(message, text, place)


def _text_entry(message: Message, text: str, place: _Place) -> TranscriptEntry:
    _, _, _, worker, _ = place
    if message.kind == UPDATE_KIND:
        return ListUpdate(message.id, *place, "checklist", _checklist_lines(text))
    if message.kind in _QUIET:
        line, _, detail = text.partition("\n")
        return QuietLine(message.id, *place, _QUIET[message.kind], line, detail.strip())
    if message.kind in _NOTICES or message.kind == message_kinds.ENDING:
        return PostedNotice(message.id, *place, message.kind, text)
    if worker:
        return QuietLine(message.id, *place, "task", excerpt(text, 200), text)
    if message.role == MessageRole.USER:
        return PersonMessage(message.id, *place, original_request(text))
    if message.role == MessageRole.ASSISTANT:
        return AgentText(message.id, *place, text)
    return PostedNotice(message.id, *place, message.kind, text)


def _parsed(message: Message) -> Reply | UserText | str:
    """The message as the model sees it; its content if the model does not see it, or if it is damaged."""
    if message.kind not in (message_kinds.REPLY, message_kinds.GOAL):
        return message.content
    try:
        found = from_stored(message)
    except StoreDamaged:
        return message.content
    return found if isinstance(found, (Reply, UserText)) else message.content


# --- calls ------------------------------------------------------------------------------------------------


def call_entry(call: TranscriptCall, turn: StoredTurn | None, position: int) -> CallCard:
    arguments = _json_object(call.arguments) if len(call.arguments) < MAX_ARGUMENTS else None
    result = call.result if call.result is not None else call.explanation or ""
    approval = None
    if call.approval:
        modified = call.outcome == ApprovalOutcome.MODIFY
        approval = CallApproval(call.approval, call.answered_by, call.answer_reason or "", modified)
    return CallCard(
        *_place(call, turn, position),
        call.tool,
        arguments,
        call.arguments[:MAX_RESULT],
        call.status,
        result,
        (call.result_length or 0) > MAX_RESULT,
        call.output_file,
        call.started_at,
        call.ended_at,
        _seconds(call),
        approval,
        _diff(call, arguments),
    )


def list_entry(call: TranscriptCall, turn: StoredTurn | None, position: int) -> ListUpdate | None:
    """A successful change of the plan; None for any other call."""
    if call.status != CallStatus.SUCCESS or call.tool not in _PLAN_TOOLS:
        return None
    told = _json_object(call.result or "") or {}
    items = _lines(told.get("created", [told]))
    return ListUpdate(*_place(call, turn, position), "plan", items) if items else None


def _place(call: TranscriptCall, turn: StoredTurn | None, position: int) -> tuple[str, *_Place]:
    agent, worker = (turn.agent_id, turn.parent_turn_id is not None) if turn else (None, False)
    return call.id, call.created_at, call.turn_id, agent, worker, position


def _lines(items: object) -> list[UpdatedItem]:
    if not isinstance(items, list):
        return []
    return [
        UpdatedItem(str(item["title"]), str(item.get("status") or "pending"))
        for item in items
        if isinstance(item, dict) and "title" in item
    ]


def _checklist_lines(text: str) -> list[UpdatedItem]:
    """The items in the message about a change of the checklist."""
    lines = (line.strip().partition(" ") for line in text.splitlines()[1:])
    return [UpdatedItem(label, _STATUSES.get(icon, "pending")) for icon, _, label in lines if label]


def _seconds(call: TranscriptCall) -> float | None:
    if call.started_at is None or call.ended_at is None:
        return None
    took = datetime.fromisoformat(call.ended_at) - datetime.fromisoformat(call.started_at)
    return round(took.total_seconds(), 3)


def _diff(call: TranscriptCall, arguments: Mapping[str, Any] | None) -> str | None:
    """The diff that the person was asked about, else what the arguments say about the change.

    Arguments that were edited are not those that the person was asked about.
    """
    if call.question is not None and _DIFF in call.question and call.outcome != ApprovalOutcome.MODIFY:
        return call.question[call.question.index(_DIFF) :]
    match call.tool, arguments:
        case "edit_file", {"path": str(path), "old": str(old), "new": str(new)}:
            return _change(path, old, new)
        case "write_file", {"path": str(path), "content": str(content)}:
            return _change(path, "", content)
    return None


def _change(path: str, old: str, new: str) -> str:
    removed, added = old.splitlines(), new.splitlines()
    lines = [f"--- a/{path}", f"+++ b/{path}", *(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return "\n".join(lines)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
