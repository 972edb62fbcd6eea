"""A conversation with everything stored about it, as JSON (described in docs/sessions.md)."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.model import Checklist, item_json
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Conversation, Message, QueuedMessage, StoredTurn, Trace
from punchlist.kernel.camel_json import camel_json
from punchlist.plan.model import TurnTodo
from punchlist.plan.repository import TurnTodoRepository
from punchlist.plan.tools import todo_json
from punchlist.storage.store import Store
from punchlist.surfaces.conversation_view import TurnView, all_turns, build_view
from punchlist.toolcalls import repository as toolcalls
from punchlist.toolcalls.stored_call import StoredCall

FORMAT: Final = 1
"""Increased when a field is removed or changes its meaning. New fields do not increase it."""

CALL_FIELDS: Final = (
    *("id", "turn_id", "position", "tool", "arguments", "status", "effect", "workspace", "result", "output_file"),
    *("error_code", "explanation", "created_at", "started_at", "ended_at"),
)
"""Not `exact`, which can contain secrets."""
TRACE_FIELDS: Final = ("id", "turn_id", "kind", "name", "input", "output", "error", "started_at", "ended_at")


class ConversationRecord(NamedTuple):
    """Everything stored about one conversation, read in one transaction."""

    conversation: Conversation
    turns: list[StoredTurn]
    messages: list[Message]
    calls: list[StoredCall]
    traces: list[Trace]
    queued: list[QueuedMessage]
    plans: dict[str, list[TurnTodo]]
    checklist: Checklist


def load_record(store: Store, conversation: Conversation) -> ConversationRecord:
    id = conversation.id
    with store.read() as tx:
        turns = conversation_repository.all_turns(tx, id)
        todos = TurnTodoRepository(tx)
        return ConversationRecord(
            conversation,
            turns,
            conversation_repository.all_messages(tx, id),
            toolcalls.calls_of_conversation(tx, id),
            conversation_repository.all_traces(tx, id),
            conversation_repository.all_queued_messages(tx, id),
            {turn.id: todos.find_by_turn(turn.id) for turn in turns},
            checklist_repository.find_checklist(tx, id),
        )


def as_json(record: ConversationRecord) -> dict[str, Any]:
    views = {view.turn.id: view for view in all_turns(build_view(record.turns, record.messages))}
    return {
        "format": FORMAT,
        "conversation": conversation_json(record.conversation),
        "turns": [
            {
                **turn_json(views.get(turn.id) or TurnView(turn)),
                "todos": [todo_json(todo) for todo in record.plans[turn.id]],
            }
            for turn in record.turns
        ],
        "messages": [message_json(message) for message in record.messages],
        "toolCalls": [
            {**camel_json(call, *CALL_FIELDS), "arguments": _parsed(call.arguments)} for call in record.calls
        ],
        "traces": [camel_json(trace, *TRACE_FIELDS) for trace in record.traces],
        "queue": [one.as_json() for one in record.queued],
        "checklist": {
            "revision": record.checklist.revision,
            "items": [dict(item_json(item)) for item in record.checklist.items],
        },
    }


def conversation_json(conversation: Conversation) -> dict[str, Any]:
    return {**camel_json(conversation), "metadata": _parsed(conversation.metadata)}


def stored_turn_json(turn: StoredTurn) -> dict[str, Any]:
    names = ("id", "parent_turn_id", "started_at", "ended_at", "end_reason")
    return {**camel_json(turn, *names), "agent": turn.agent_id}


def turn_json(view: TurnView) -> dict[str, Any]:
    usage = view.usage
    return {
        **stored_turn_json(view.turn),
        "iterations": view.iterations,
        "continuations": view.continuations,
        "usage": {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens},
    }


def message_json(message: Message) -> dict[str, Any]:
    """The content of replies and results is an object, of other messages a text."""
    shown = camel_json(message, "id", "turn_id", "position", "role", "kind", "content", "created_at")
    if message.kind in ("reply", "result") and message.role in ("assistant", "tool"):
        shown["content"] = _parsed(message.content)
    return shown


def _parsed(written: str) -> Any:
    """The value of a JSON text; a text that is not JSON stays a text."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written
