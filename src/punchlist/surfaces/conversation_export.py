"""A conversation with everything stored about it: as JSON (described in docs/sessions.md) and as Markdown.

Both are made from a tree: turns with their messages, calls with their results, turns of workers inside. A damaged
message is shown as text; `db check` reports it. In Markdown, messages are quoted and tool results are fenced, so that
their text cannot become Markdown of the document.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from punchlist.agent.message_kinds import CONTINUATION, RESULT, TEXT
from punchlist.agent.transcript import from_stored
from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.model import Checklist, item_json
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Conversation, Message, QueuedMessage, StoredTurn, Trace
from punchlist.errors import StoreDamaged
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.json_text import json_or_text
from punchlist.kernel.text import visible, visible_block
from punchlist.models.model import CallReturn, Reply, Usage
from punchlist.models.model import Message as ModelMessage
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.plan.repository import TurnTodoRepository
from punchlist.plan.tools import todo_json
from punchlist.storage.store import Store
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
            {**camel_json(call, *CALL_FIELDS), "arguments": json_or_text(call.arguments)} for call in record.calls
        ],
        "traces": [camel_json(trace, *TRACE_FIELDS) for trace in record.traces],
        "queue": [one.as_json() for one in record.queued],
        "checklist": {
            "revision": record.checklist.revision,
            "items": [dict(item_json(item)) for item in record.checklist.items],
        },
    }


def conversation_json(conversation: Conversation) -> dict[str, Any]:
    return {**camel_json(conversation), "metadata": json_or_text(conversation.metadata)}


def stored_turn_json(turn: StoredTurn) -> dict[str, Any]:
    names = ("id", "parent_turn_id", "started_at", "ended_at", "end_reason")
    return {**camel_json(turn, *names), "agent": turn.agent_id}


def turn_json(view: TurnView) -> dict[str, Any]:
    usage = view.usage
    return {
        **stored_turn_json(view.turn),
        "iterations": view.iterations,
        "continuations": view.continuations,
        "usage": {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "cachedTokens": usage.cached_tokens,
        },
    }


def message_json(message: Message) -> dict[str, Any]:
    """The content of replies and results is an object, of other messages a text."""
    shown = camel_json(message, "id", "turn_id", "position", "role", "kind", "content", "created_at")
    if message.kind in ("reply", "result") and message.role in ("assistant", "tool"):
        shown["content"] = json_or_text(message.content)
    return shown


# --- Markdown ---------------------------------------------------------------------------------------------

BOXES = {
    PlanStatus.PENDING: "[ ]",
    PlanStatus.IN_PROGRESS: "[>]",
    PlanStatus.COMPLETED: "[x]",
    PlanStatus.CANCELLED: "[-]",
}


def as_markdown(record: ConversationRecord) -> str:
    return "\n\n".join(_document(record)) + "\n"


def _document(record: ConversationRecord) -> Iterator[str]:
    conversation = record.conversation
    yield f"# Conversation {_code(conversation.id)}"
    if conversation.title:
        yield _quote(conversation.title)
    yield f"Started {conversation.created_at}: {len(record.turns)} turns, {len(record.messages)} messages."
    number = 0
    for one in build_view(record.turns, record.messages):
        if isinstance(one, TurnView):
            number += 1
            yield from _turn(one, record, f"## Turn {number}")
        else:
            yield from _message(one)
    if record.checklist.items:
        yield "## Checklist"
        boxes = {"completed": "[x]", "in_progress": "[>]", "cancelled": "[-]", "dropped": "[!]"}
        yield "\n".join(f"- {boxes.get(item.status, '[ ]')} {_code(item.content)}" for item in record.checklist.items)
    waiting = [one for one in record.queued if one.status == "queued"]
    if waiting:
        yield "## Queued"
        for queued in waiting:
            yield _quote(queued.content)


def _turn(view: TurnView, record: ConversationRecord, heading: str) -> Iterator[str]:
    turn, usage = view.turn, view.usage
    yield heading
    yield "\n".join(
        [
            f"- turn {_code(turn.id)} of {_code(turn.agent_id)}, {turn.started_at} to {turn.ended_at or 'now'}",
            f"- {_code(view.state)}",
            f"- iterations: {view.iterations}, continuations: {view.continuations}, "
            f"tokens: {usage.input_tokens} in, {usage.output_tokens} out",
        ]
    )
    for step in view.steps:
        match step:
            case MessageStep():
                yield from _message(step)
            case ReplyStep():
                yield from _reply(step, turn.agent_id)
            case TurnView():
                yield from _turn(step, record, f"### Worker {_code(step.turn.agent_id)}")
    todos = record.plans[turn.id]
    if todos:
        yield "**Plan**"
        yield "\n".join(_todo(todo) for todo in todos)


def _todo(todo: TurnTodo) -> str:
    return f"- {BOXES[todo.status]} {_code(todo.title)}" + (f": {_code(todo.outcome)}" if todo.outcome else "")


def _message(message: MessageStep) -> Iterator[str]:
    yield f"**{'request' if message.is_request else visible(message.kind)}**"
    yield _quote(message.text)


def _reply(reply: ReplyStep, agent: str) -> Iterator[str]:
    if reply.text:
        yield f"**{_code(agent)}**"
        yield _quote(reply.text)
    for call in reply.calls:
        yield f"**call** {_code(call.tool)} {_code(call.arguments)}"
        yield _result(call)


def _result(call: CallStep) -> str:
    if call.result is None:
        return "*no result*"
    fence = _longer_than_any("`", call.result, 3)
    return f"{'failed:' if call.failed else 'returned:'}\n\n{fence}text\n{visible_block(call.result)}\n{fence}"


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in visible_block(text).split("\n"))


def _code(text: str) -> str:
    """Text as inline code, on one line."""
    shown = visible(" ".join(text.split()))
    fence = _longer_than_any("`", shown, 1)
    pad = " " if "`" in shown or not shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _longer_than_any(mark: str, text: str, shortest: int) -> str:
    runs = [len(run) for run in re.findall(f"{re.escape(mark)}+", text)]
    return mark * max(shortest, *(length + 1 for length in runs), 0)


# --- the tree: pure functions from stored rows to values --------------------------------------------------

DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class MessageStep:
    """A message to the agent, or a note of the loop. `kind` is the kind of the stored message."""

    role: str
    kind: str
    text: str

    @property
    def is_request(self) -> bool:
        """Whether it is a request, not a prompt or note of the loop."""
        return self.role == "user" and self.kind == TEXT


@dataclass(frozen=True, slots=True)
class CallStep:
    """A call; `result` is None until it has ended."""

    tool: str
    arguments: str
    result: str | None
    failed: bool


@dataclass(frozen=True, slots=True)
class ReplyStep:
    text: str
    calls: tuple[CallStep, ...]


@dataclass(slots=True)
class TurnView:
    turn: StoredTurn
    steps: list[Step] = field(default_factory=list)
    iterations: int = 0
    continuations: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def state(self) -> str:
        """`open`, or `ended` with the reason."""
        return "open" if self.turn.open else f"ended: {self.turn.end_reason or 'no reason given'}"


Step = MessageStep | ReplyStep | TurnView


def build_view(turns: Sequence[StoredTurn], messages: Sequence[Message]) -> list[TurnView | MessageStep]:
    """The turns and the messages outside of turns, in order. A worker's turn is inside its parent's."""
    views = {turn.id: TurnView(turn) for turn in turns}
    by_turn: dict[str | None, list[Message]] = defaultdict(list)
    for message in messages:
        by_turn[message.turn_id if message.turn_id in views else None].append(message)
    # A turn has the position of its first message; turns without messages come last.
    places = {
        id: by_turn[id][0].position if by_turn[id] else len(messages) + number for number, id in enumerate(views, 1)
    }
    outer: list[tuple[int, TurnView | MessageStep]] = [
        (message.position, _message_step(message)) for message in by_turn[None]
    ]
    inner: dict[str, list[tuple[int, Step]]] = defaultdict(list)
    for id, view in views.items():
        parent = view.turn.parent_turn_id
        if parent in views and parent is not None:
            inner[parent].append((places[id], view))
        else:
            outer.append((places[id], view))
    for id, view in views.items():
        _fill(view, by_turn[id], inner[id])
    return [step for _, step in sorted(outer, key=lambda placed: placed[0])]


def all_turns(steps: Iterable[Step]) -> Iterator[TurnView]:
    """All turns of a tree, each before the turns of its workers."""
    for step in steps:
        if isinstance(step, TurnView):
            yield step
            yield from all_turns(step.steps)


def _fill(view: TurnView, messages: Sequence[Message], workers: Sequence[tuple[int, Step]]) -> None:
    steps: list[tuple[int, Step]] = list(workers)
    # Backwards, since models reuse call ids: each reply takes the results that directly follow it.
    results: dict[str, CallReturn] = {}
    for message in reversed(messages):
        match parse_message(message):
            case CallReturn() as returned:
                results[returned.call_id] = returned
            case Reply() as reply:
                view.iterations += 1
                view.usage += reply.usage
                steps.append((message.position, _reply_step(reply, results)))
                results = {}
            case _:
                view.continuations += message.kind == CONTINUATION
                steps.append((message.position, _message_step(message)))
    view.steps = [step for _, step in sorted(steps, key=lambda placed: placed[0])]


def parse_message(message: Message) -> ModelMessage | None:
    try:
        return from_stored(message)
    except StoreDamaged:
        return None


def _reply_step(reply: Reply, results: dict[str, CallReturn]) -> ReplyStep:
    return ReplyStep(
        reply.text, tuple(_call_step(call.tool, call.arguments, results.get(call.id)) for call in reply.calls)
    )


def _call_step(tool: str, arguments: object, result: CallReturn | None) -> CallStep:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=repr)
    return CallStep(tool, written, result.text if result else None, bool(result and result.failed))


def _message_step(message: Message) -> MessageStep:
    # It claims to be a reply or a result but could not be parsed: damaged.
    damaged = message.role in ("assistant", "tool") and message.kind in ("reply", RESULT)
    return MessageStep(message.role, DAMAGED if damaged else message.kind, message.content)
