"""Prints the turns of a session to a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.agent.message_kinds import CONTINUATION, ENDING
from punchlist.checklist.service import UPDATE_KIND
from punchlist.kernel.text import excerpt, visible, visible_block
from punchlist.surfaces.cli.context import echo, format_time, terminal_width
from punchlist.surfaces.conversation_export import CallStep, MessageStep, ReplyStep, Step, TurnView

INDENT: Final = "  "
_MIN_WIDTH: Final = 40


def print_conversation(view: Sequence[TurnView | MessageStep]) -> None:
    width = max(terminal_width(), _MIN_WIDTH)
    for one in view:
        echo()
        lines = _turn(one, width) if isinstance(one, TurnView) else _message(one, one.kind, width)
        echo("\n".join(lines))


def _turn(view: TurnView, width: int, who: str = "person") -> Iterator[str]:
    turn, usage = view.turn, view.usage
    yield f"Turn {visible(turn.id)}  {format_time(turn.started_at)}  {visible(turn.agent_id)}"
    yield f"{INDENT}{visible(view.state)}"
    yield (
        f"{INDENT}iterations: {view.iterations}, continuations: {view.continuations}, "
        f"tokens: {usage.input_tokens:,} in, {usage.output_tokens:,} out"
    )
    continued = 0
    for step in view.steps:
        if isinstance(step, MessageStep) and step.kind == CONTINUATION:
            continued += 1
            lines = _message(step, f"{CONTINUATION} {continued}", width)
        else:
            lines = _step(step, width, who, turn.agent_id)
        yield from (f"{INDENT}{line}" if line else line for line in lines)


def _step(step: Step, width: int, who: str, agent: str) -> Iterator[str]:
    match step:
        case MessageStep():
            if step.is_request or step.kind == ENDING:
                yield from _full_text(who if step.is_request else step.kind, step.text)
            else:
                yield from _message(step, step.kind, width)
        case ReplyStep():
            yield from _full_text(agent, step.text)
            for call in step.calls:
                yield from (f"{INDENT}{line}" for line in _call(call, width))
        case TurnView():
            yield from (f"{INDENT}{line}" if line else line for line in _turn(step, width - 4, agent))


def _full_text(who: str, text: str) -> Iterator[str]:
    yield f"{visible(who)}:"
    for line in visible_block(text).rstrip("\n").split("\n") if text.strip() else ():
        yield f"{INDENT}{line}".rstrip()


def _message(message: MessageStep, label: str, width: int) -> Iterator[str]:
    """The first line of a message of the loop; of a changed list, its items."""
    if message.kind == UPDATE_KIND:
        items = [line.strip() for line in message.text.splitlines()[1:]]
        yield excerpt(f"list: {'  '.join(items) or 'empty'}", width - 2)
        return
    yield excerpt(f"{label}: {_first_line(message.text)}", width - 2)


def _call(call: CallStep, width: int) -> Iterator[str]:
    yield excerpt(f"→ {call.tool} {call.arguments}", width - 4)
    if call.result is None:
        yield f"{INDENT}… no result yet"
    else:
        yield excerpt(f"{INDENT}{'✗' if call.failed else '✓'} {_first_line(call.result)}", width - 4)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return f"{lines[0].strip()}{more}" if lines else "(nothing)"
