"""A conversation as a Markdown document.

Messages are quoted and tool results are fenced, so that their text cannot become Markdown of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from punchlist.kernel.text import visible, visible_block
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.surfaces.conversation_json import ConversationRecord
from punchlist.surfaces.conversation_view import CallStep, MessageStep, ReplyStep, TurnView, build_view

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
        boxes = {"completed": "[x]", "in_progress": "[>]"}
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
