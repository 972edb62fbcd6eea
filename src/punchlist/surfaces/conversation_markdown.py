"""A conversation as a Markdown document.

What was said stands in quotes and what tools returned in fences, so that no text of theirs can end
up as a heading of ours.
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


def as_markdown(found: ConversationRecord) -> str:
    return "\n\n".join(_document(found)) + "\n"


def _document(found: ConversationRecord) -> Iterator[str]:
    conversation = found.conversation
    yield f"# Conversation {_code(conversation.id)}"
    if conversation.title:
        yield _quote(conversation.title)
    yield f"Started {conversation.created_at}: {len(found.turns)} turns, {len(found.messages)} messages."
    number = 0
    for one in build_view(found.turns, found.messages):
        if isinstance(one, TurnView):
            number += 1
            yield from _turn(one, found, f"## Turn {number}")
        else:
            yield from _said(one)
    if found.checklist.items:
        yield "## Checklist"
        boxes = {"completed": "[x]", "in_progress": "[>]"}
        yield "\n".join(f"- {boxes.get(item.status, '[ ]')} {_code(item.content)}" for item in found.checklist.items)
    waiting = [one for one in found.queued if one.status == "queued"]
    if waiting:
        yield "## Queued"
        for queued in waiting:
            yield _quote(queued.content)


def _turn(story: TurnView, found: ConversationRecord, heading: str) -> Iterator[str]:
    turn, usage = story.turn, story.usage
    yield heading
    yield "\n".join(
        [
            f"- turn {_code(turn.id)} of {_code(turn.agent_id)}, {turn.started_at} to {turn.ended_at or 'now'}",
            f"- {_code(story.state)}",
            f"- iterations: {story.iterations}, continuations: {story.continuations}, "
            f"tokens: {usage.input_tokens} in, {usage.output_tokens} out",
        ]
    )
    for step in story.steps:
        match step:
            case MessageStep():
                yield from _said(step)
            case ReplyStep():
                yield from _replied(step, turn.agent_id)
            case TurnView():
                yield from _turn(step, found, f"### Worker {_code(step.turn.agent_id)}")
    todos = found.plans[turn.id]
    if todos:
        yield "**Plan**"
        yield "\n".join(_todo(todo) for todo in todos)


def _todo(todo: TurnTodo) -> str:
    return f"- {BOXES[todo.status]} {_code(todo.title)}" + (f": {_code(todo.outcome)}" if todo.outcome else "")


def _said(said: MessageStep) -> Iterator[str]:
    yield f"**{'request' if said.asked else visible(said.kind)}**"
    yield _quote(said.text)


def _replied(replied: ReplyStep, agent: str) -> Iterator[str]:
    if replied.text:
        yield f"**{_code(agent)}**"
        yield _quote(replied.text)
    for call in replied.calls:
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
    """One line that Markdown leaves as it is."""
    shown = visible(" ".join(text.split()))
    fence = _longer_than_any("`", shown, 1)
    pad = " " if "`" in shown or not shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _longer_than_any(mark: str, text: str, shortest: int) -> str:
    runs = [len(run) for run in re.findall(f"{re.escape(mark)}+", text)]
    return mark * max(shortest, *(length + 1 for length in runs), 0)
