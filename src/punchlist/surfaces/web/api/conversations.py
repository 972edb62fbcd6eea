"""Conversations: sessions and the chats of missions, their messages and the queue of messages to them."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from punchlist.conversations.message_queue import MessageQueue
from punchlist.errors import IllegalTransition
from punchlist.kernel.camel_json import camel_json
from punchlist.surfaces.web.api.endpoint import PEOPLE, ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import Cursor, Limit, ReasonBody
from punchlist.surfaces.web.api.work_shapes import ChatMessageShape, ChatRequestShape, ChatRunShape
from punchlist.views.chat import read_chat
from punchlist.views.conversations import read_conversation, read_conversations

_TURN_FIELDS = ("id", "agent_id", "parent_turn_id", "started_at", "ended_at", "end_reason")


class ConversationQuery(RequestModel):
    search: Annotated[str, Field(max_length=200, description="Words in them; then the best matches come first.")] = ""
    limit: Limit = 50
    cursor: Cursor = None


class LastTurnShape(ResponseModel):
    id: str
    agent: str
    parent_turn_id: str | None
    started_at: str
    ended_at: str | None
    end_reason: str | None


class ProgressShape(ResponseModel):
    total: int
    open: int
    done: int
    in_progress: Annotated[str | None, Field(description="What is being done.")]


class ConversationShape(ResponseModel):
    id: str
    title: Annotated[str, Field(description="Else the beginning of the first request; empty if it has neither.")]
    created_at: str
    active_at: str
    state: Literal["working", "waiting", "interrupted", "ended", "new"]
    last_text: Annotated[str, Field(description="The beginning of the last thing that a person or an agent wrote.")]
    turn: Annotated[LastTurnShape | None, Field(description="The open turn, else the last one.")]
    items: Annotated[ProgressShape, Field(description="The progress of plan and checklist.")]
    approvals: int


class ConversationListShape(ResponseModel):
    items: list[ConversationShape]
    next_cursor: str | None


class TurnQuery(RequestModel):
    limit: Limit = 50


class TurnShape(ResponseModel):
    id: str
    agent_id: str
    parent_turn_id: str | None
    started_at: str
    ended_at: str | None
    end_reason: str | None


class TurnListShape(ResponseModel):
    items: list[TurnShape]


Position = Annotated[int | None, Field(ge=0, le=2**31 - 1)]


class MessageQuery(RequestModel):
    before: Annotated[Position, Field(description="Messages before this position.")] = None
    after: Annotated[Position, Field(description="Messages after this position.")] = None
    limit: Limit = 50


class QueuedShape(ResponseModel):
    id: str
    status: str
    content: str
    said_by: str
    created_at: str
    changed_at: str | None
    turn_id: Annotated[str | None, Field(description="The turn that began with it.")]


class ChatNameShape(ResponseModel):
    id: str
    title: str
    created_at: str


class ChatDirectiveShape(ResponseModel):
    number: int
    content: str
    holds_until: str | None


class ChatShape(ResponseModel):
    conversation: ChatNameShape
    messages: list[ChatMessageShape]
    earlier: bool
    later: bool
    runs: list[ChatRunShape]
    waiting: list[QueuedShape]
    requests: list[ChatRequestShape]
    directives: Annotated[list[ChatDirectiveShape], Field(description="Those that hold in the mission of the chat.")]


class MessageBody(RequestModel):
    content: Annotated[str, Field(min_length=1, max_length=50_000)]


class QueueShape(ResponseModel):
    items: list[QueuedShape]


class TurnBody(RequestModel):
    """Without a goal and `resume`: finish what is open, else deliver a queued message."""

    goal: Annotated[str | None, Field(min_length=1, max_length=50_000)] = None
    resume: Annotated[bool, Field(description="Continue the interrupted or waiting turn.")] = False
    model: Annotated[str | None, Field(max_length=200)] = None
    mode: Literal["plan", "default", "auto-edit"] | None = None
    agent: Annotated[str | None, Field(max_length=100)] = None


class StartedShape(ResponseModel):
    session: str
    turn_id: str


class InterruptedTurnShape(ResponseModel):
    id: str
    open: Annotated[bool, Field(description="Whether its process has yet to end it.")]
    end_reason: str | None
    ended_at: str | None


class InterruptShape(ResponseModel):
    turn: Annotated[InterruptedTurnShape | None, Field(description="null if none was open.")]


def _list(call: ApiCall) -> Any:
    query = call.query
    store = call.services.store
    return read_conversations(store, search=query.search, limit=query.limit, cursor=query.cursor).as_json()


def _show(call: ApiCall) -> Any:
    return read_conversation(call.services.store, call.path["id"]).as_json()


def _turns(call: ApiCall) -> Any:
    conversation = call.services.conversations.get(call.path["id"])
    turns = call.services.conversations.turns(conversation.id, limit=call.query.limit)
    return {"items": [camel_json(turn, *_TURN_FIELDS) for turn in turns]}


def _messages(call: ApiCall) -> Any:
    query = call.query
    page = read_chat(call.services.store, call.path["id"], before=query.before, after=query.after, limit=query.limit)
    return page.as_json()


def _queue(call: ApiCall) -> Any:
    conversation = call.services.conversations.get(call.path["id"])
    return {"items": [message.as_json() for message in _message_queue(call).pending(conversation.id)]}


def _send(call: ApiCall) -> Any:
    """The agent of the chat gets it when it is free."""
    conversation = call.services.conversations.get(call.path["id"])
    slug = json.loads(conversation.metadata).get("missionSlug")
    if slug is not None and call.services.missions.get(slug).status == "archived":
        raise IllegalTransition(f"Mission {slug!r} is archived, so its agents do not answer. The message was not sent.")
    return _message_queue(call).add(call.scope(conversation.id), call.body.content).as_json()


def _edit(call: ApiCall) -> Any:
    scope, message = call.scope(call.path["id"]), call.path["message"]
    return _message_queue(call).edit(scope, message, call.body.content).as_json()


def _withdraw(call: ApiCall) -> Any:
    return _message_queue(call).withdraw(call.scope(call.path["id"]), call.path["message"]).as_json()


def _start(call: ApiCall) -> Any:
    return _started(call, call.path["id"])


def _start_new(call: ApiCall) -> Any:
    return _started(call, None)


def _started(call: ApiCall, session: str | None) -> Any:
    from punchlist.agent.turn_process import start_turn

    body = call.body
    started = start_turn(
        call.services,
        session,
        body.goal,
        model=body.model or call.context.web.model,
        mode=body.mode or call.context.web.mode,
        agent=body.agent,
        resume=body.resume,
        folder=call.services.workspace,
    )
    return {"session": started.turn.conversation_id, "turnId": started.turn.id}


def _interrupt(call: ApiCall) -> Any:
    from punchlist.agent.turn_process import interrupt_turn

    actor, reason = call.context.principal.actor, call.body.reason
    given = {"reason": reason} if reason else {}
    turn = interrupt_turn(call.services, call.path["id"], actor=actor, **given)
    shown = turn and {"id": turn.id, "open": turn.open, "endReason": turn.end_reason, "endedAt": turn.ended_at}
    return {"turn": shown}


def _message_queue(call: ApiCall) -> MessageQueue:
    return MessageQueue(call.services.store, call.services.conversations)


ENDPOINTS = [
    Endpoint(
        "GET", "/conversations", "listConversations", "Sessions and chats by their last activity, newest first.",
        _list, ConversationListShape, ConversationQuery,
    ),
    Endpoint(
        "GET", "/conversations/{id}", "getConversation", "A session or chat, as in the list.", _show, ConversationShape,
    ),
    Endpoint(
        "GET", "/conversations/{id}/turns", "listTurns", "The newest turns of a session.", _turns, TurnListShape,
        TurnQuery,
    ),
    Endpoint(
        "GET", "/conversations/{id}/messages", "getMessages",
        "The newest messages, or those next to a position; open runs and requests.",
        _messages, ChatShape, MessageQuery,
    ),
    Endpoint(
        "POST", "/conversations/{id}/messages", "sendMessage",
        "Queue a message; the agent answers when it is free.",
        _send, QueuedShape, body=MessageBody, status=202, roles=PEOPLE,
    ),
    Endpoint(
        "POST", "/conversations", "startConversation", "Start a turn in a new session, in a process of its own.",
        _start_new, StartedShape, body=TurnBody, status=202, roles=PEOPLE, joins=False,
    ),
    Endpoint(
        "POST", "/conversations/{id}/turns", "startTurn", "Start a turn in a session, in a process of its own.",
        _start, StartedShape, body=TurnBody, status=202, roles=PEOPLE, joins=False,
    ),
    Endpoint(
        "POST", "/conversations/{id}/interrupt", "interruptTurn", "Cancel the open turn of a session.",
        _interrupt, InterruptShape, body=ReasonBody, roles=PEOPLE,
    ),
    Endpoint("GET", "/conversations/{id}/queue", "listQueue", "Messages that wait for delivery.", _queue, QueueShape),
    Endpoint(
        "PATCH", "/conversations/{id}/queue/{message}", "editQueued", "Edit a message that waits.",
        _edit, QueuedShape, body=MessageBody, roles=PEOPLE,
    ),
    Endpoint(
        "DELETE", "/conversations/{id}/queue/{message}", "withdrawQueued", "Withdraw a message that waits.",
        _withdraw, QueuedShape, roles=PEOPLE,
    ),
]  # fmt: skip
