"""The lines of `punchlist run`: pure functions from values of a turn to text that is safe to show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import PLAN_TOOLS
from punchlist.checklist.render import render_frame
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.context import plural
from punchlist.surfaces.cli.layout import fit_line
from punchlist.surfaces.figures import format_cost, format_count, format_seconds
from punchlist.toolcalls.lifecycle import UnfinishedCode
from punchlist.toolcalls.model import (
    CancelledToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    WaitingToolCall,
)

if TYPE_CHECKING:
    from punchlist.agent.list_state import ListItem
    from punchlist.agent.turn_model import TurnResult

ICONS: Final = {"pending": "○", "in_progress": "▶", "completed": "✓", "cancelled": "✗", "dropped": "!"}
COLORS: Final = {"✓": "32", "▶": "33;1", "○": "2", "✗": "31", "?": "33;1", "!": "33;1"}
"""As in `todos`; a call that failed is red."""
_DIM: Final = "2"
_FRAMED_ICON: Final = re.compile("^│ ([✓▶○✗!?]) ")
_LINE_ICON: Final = re.compile("^((?:  [^ ]+ )?)([✓▶✗?])(?= )")
MAX_SUBJECT_LENGTH: Final = 60
MIN_SUBJECT_LENGTH: Final = 10
TIME_LENGTH: Final = len("▶  (59 min 59 s) ")
SUBJECTS: Final = ("command", "path", "pattern", "mission", "query")
LIST_TOOLS: Final = (*PLAN_TOOLS, "TodoWrite")
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TAB: Final = 4


def answer_text(text: str) -> str:
    """Text of a model, safe to show. Tabs and line breaks keep their meaning."""
    return visible_block(text.replace("\r\n", "\n").expandtabs(_TAB))


def first_line(text: str) -> str:
    return visible(next(iter(text.strip().expandtabs(_TAB).splitlines()), ""))


def indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in answer_text(text.strip("\n")).splitlines())


# --- the status line --------------------------------------------------------------------------------------


def status_line(frame: int, seconds: float, tokens: int, cost: float | None, auto: str, columns: int) -> str:
    """The line with the spinner: `⠹ 12 s · 3.1k tokens · $0.02 · auto 3/10`."""
    parts = [format_seconds(int(seconds)), f"{format_count(tokens)} tokens"]
    if cost is not None:
        parts.append(format_cost(cost))
    line = f"{SPINNER[frame % len(SPINNER)]} {' · '.join([*parts, auto])}"
    return fit_line(line if len(line) < columns else line.replace("tokens", "tok").replace(" · ", "·"), columns - 1)


def auto_text(count: int, limit: int | None) -> str:
    """Whether the agent is sent back to its list, and how often it was (C15)."""
    return "auto off" if limit is None else f"auto {count}/{limit}"


def mode_text(count: int, limit: int | None) -> str:
    return "continuation is off" if limit is None else f"continued {count} of {limit} times"


# --- lists and turns --------------------------------------------------------------------------------------


def list_box(items: Sequence[ListItem], mode: str, columns: int, limit: int) -> list[str]:
    """At most `limit` of the items in a frame: a few that have ended, then the open ones."""
    done = sum(item.status in ("completed", "cancelled") for item in items)
    first = max(0, min(done - 2, len(items) - limit))
    shown = items[first : first + limit]
    more = len(items) - len(shown)
    footer = f"{done}/{len(items)} ended{f', {more} not shown' if more else ''} · {mode}"
    return render_frame([(ICONS.get(item.status, "?"), _label(item)) for item in shown], footer, columns)


def _label(item: ListItem) -> str:
    return visible(f"{item.title}{f' ({item.note})' if item.note else ''}")


def ended_line(ended: TurnResult, seconds: float | None) -> str:
    often = "once" if ended.continuations == 1 else f"{ended.continuations} times"
    used = [
        f"{ended.iterations} repl{'y' if ended.iterations == 1 else 'ies'}",
        f"continued {often}",
        plural(ended.usage.total, "token"),
    ]
    if ended.cost:
        used.append(format_cost(ended.cost))
    if seconds is not None:
        used.append(format_seconds(seconds))
    what = "waits" if ended.reason is Reason.WAITING else f"ended as {ended.reason}"
    return f"· {what}: {', '.join(used)}"


# --- calls ------------------------------------------------------------------------------------------------


def call_name(request: ToolCallRequest, columns: int) -> str:
    """The tool and its main argument, cut so that the time still fits on the line."""
    tool = visible(request.tool)
    room = max(min(columns // 2, columns - len(tool) - TIME_LENGTH), MIN_SUBJECT_LENGTH)
    return " ".join(part for part in (tool, fit_line(_subject(request), min(room, MAX_SUBJECT_LENGTH))) if part)


def _subject(request: ToolCallRequest) -> str:
    arguments: Any = request.arguments
    if not isinstance(arguments, Mapping):
        return ""
    return first_line(next((arguments[name] for name in SUBJECTS if isinstance(arguments.get(name), str)), ""))


def call_line(call: ToolCall, seconds: float | None, columns: int) -> str | None:
    """One line for a call that waits or has ended; None for other states."""
    tool = call_name(call.request, columns)
    if seconds is not None and call.request.tool not in LIST_TOOLS:
        tool += f" ({format_seconds(seconds)})"
    match call:
        case SuccessfulToolCall(result=result):
            return f"✓ {tool}  {first_line(_plan_result(call.request.tool, result.data) or result.text)}"
        case ErroredToolCall(error=error) if error.code == UnfinishedCode.SUSPENDED:
            return f"? {tool} waits: {first_line(error.message)}"
        case ErroredToolCall(error=error):
            return f"✗ {tool}  {first_line(error.message)}"
        case CancelledToolCall(not_started=True):
            return f"? {tool} comes after a call that waits"
        case CancelledToolCall(reason=reason):
            return f"✗ {tool}  {first_line(reason)}"
        case WaitingToolCall(question=question):
            return f"? {tool} waits for approval: {first_line(question.why)}"
    return None


def _plan_result(tool: str, data: Any) -> str:
    """The result of a plan tool as text; empty for other tools."""
    match tool, data:
        case "create_todo", {"created": [*created]}:
            return f"{plural(len(created), 'task')} planned"
        case "complete_todo", {"title": title, "retry": True}:
            return f"“{title}” failed and will be retried"
        case "complete_todo", {"title": title, "status": status, "outcome": outcome}:
            return f"“{title}” {status}: {outcome}"
        case "start_todo", {"title": title}:
            return f"“{title}”"
        case "list_todo", {"summary": {"total": total, "pending": pending, "inProgress": running}}:
            return f"{total} tasks, {pending + running} open"
    return ""


# --- colours ----------------------------------------------------------------------------------------------


def paint(line: str) -> str:
    """A line of an event or of the list with a coloured icon; lines about the run itself are dim."""
    if line.startswith(("· ", *SPINNER)):
        return _styled(line, _DIM)
    if framed := _FRAMED_ICON.match(line):
        icon = framed[1]
        # In a list, a cancelled item is no failure.
        return f"│ {_styled(icon, _DIM if icon == '✗' else COLORS[icon])} {line[framed.end() :]}"
    return _LINE_ICON.sub(lambda match: f"{match[1]}{_styled(match[2], COLORS[match[2]])}", line)


def _styled(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"
