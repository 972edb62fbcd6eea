"""A conversation with everything stored about it, as JSON (described in docs/sessions.md)."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.model import Checklist, item_json
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Conversation, Message, QueuedMessage, StoredTurn, Trace
from punchlist.plan.model import TurnTodo
from punchlist.plan.repository import TurnTodoRepository
from punchlist.plan.tools import todo_json
from punchlist.storage.store import Store
from punchlist.surfaces.conversation_view import TurnView, all_turns, build_view
from punchlist.toolcalls import repository as toolcalls
from punchlist.toolcalls.stored_call import StoredCall

FORMAT: Final = 1
"""Increased when a field is removed or changes its meaning. New fields do not increase it."""


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
        "toolCalls": [_call_json(call) for call in record.calls],
        "traces": [_trace_json(trace) for trace in record.traces],
        "queue": [one.as_json() for one in record.queued],
        "checklist": {
            "revision": record.checklist.revision,
            "items": [dict(item_json(item)) for item in record.checklist.items],
        },
    }


def conversation_json(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "metadata": _parsed(conversation.metadata),
        "createdAt": conversation.created_at,
    }


def stored_turn_json(turn: StoredTurn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "parentTurnId": turn.parent_turn_id,
        "agent": turn.agent_id,
        "startedAt": turn.started_at,
        "endedAt": turn.ended_at,
        "endReason": turn.end_reason,
    }


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
    written = message.kind in ("reply", "result") and message.role in ("assistant", "tool")
    return {
        "id": message.id,
        "turnId": message.turn_id,
        "position": message.position,
        "role": message.role,
        "kind": message.kind,
        "content": _parsed(message.content) if written else message.content,
        "createdAt": message.created_at,
    }


def _call_json(call: StoredCall) -> dict[str, Any]:
    """All fields except `exact`, which can contain secrets."""
    return {
        "id": call.id,
        "turnId": call.turn_id,
        "position": call.position,
        "tool": call.tool,
        "arguments": _parsed(call.arguments),
        "status": call.status,
        "effect": call.effect,
        "workspace": call.workspace,
        "result": call.result,
        "outputFile": call.output_file,
        "errorCode": call.error_code,
        "explanation": call.explanation,
        "createdAt": call.created_at,
        "startedAt": call.started_at,
        "endedAt": call.ended_at,
    }


def _trace_json(trace: Trace) -> dict[str, Any]:
    return {
        "id": trace.id,
        "turnId": trace.turn_id,
        "kind": trace.kind,
        "name": trace.name,
        "input": trace.input,
        "output": trace.output,
        "error": trace.error,
        "startedAt": trace.started_at,
        "endedAt": trace.ended_at,
    }


def _parsed(written: str) -> Any:
    """The value of a JSON text; a text that is not JSON stays a text."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written
