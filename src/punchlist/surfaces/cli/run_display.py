"""Shows a run on stderr: one line per event, and in a terminal the list below them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

from punchlist.agent.continuation import Reason
from punchlist.agent.events import (
    AgentEvent,
    CallChanged,
    Continued,
    ListChanged,
    NoteAdded,
    ReplyReceived,
    TurnEnded,
    TurnStarted,
)
from punchlist.agent.list_state import ListItem
from punchlist.checklist.render import MAX_LINES_PER_ITEM, render_frame
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import supports_ansi, terminal_height, terminal_width
from punchlist.toolcalls.lifecycle import UnfinishedCode
from punchlist.toolcalls.model import (
    CancelledToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    WaitingToolCall,
)

ICONS: Final = {"pending": "○", "in_progress": "▶", "completed": "✓", "cancelled": "✗"}
MAX_LINE_LENGTH: Final = 160
MAX_SUBJECT_LENGTH: Final = 60
SUBJECTS: Final = ("command", "path", "pattern", "mission", "query")
MAX_TASKS: Final = 15
"""More would push the event lines off the screen."""
_AROUND: Final = 6
"""Lines for the frame and for a few events."""


class RunDisplay:
    """Prints events. In a terminal the list is drawn below them and redrawn when it changes."""

    def __init__(self, screen: TextIO, *, live: bool) -> None:
        self._screen = screen
        self._live = live
        self._tasks: Sequence[ListItem] = ()
        self._mode = ""
        self._drawn = 0
        self._top: str | None = None

    @classmethod
    def on_stderr(cls) -> RunDisplay:
        return cls(sys.stderr, live=supports_ansi(sys.stderr))

    def show_event(self, event: AgentEvent) -> None:
        for line in self._lines(event):
            self._print(f"{'' if event.turn_id == self._top else f'  {event.agent} '}{line}")

    def note(self, text: str) -> None:
        self._print(f"· {visible(text)}")

    def _lines(self, event: AgentEvent) -> list[str]:
        match event:
            case TurnStarted():
                return [self._started(event)]
            case ReplyReceived(text=text) if event.calls and text.strip():
                return [f"  {_first_line(text)}"]
            case CallChanged(call=call):
                return _call_lines(call)
            case ListChanged(lists=lists) if event.turn_id == self._top:
                self._tasks = lists.items
                self._draw()
            case Continued():
                self._mode = _mode(event.count, event.limit)
                return [f"· stopped early; {self._mode}"]
            case NoteAdded(text=text):
                return [f"· {_first_line(text)}"]
            case TurnEnded(result=ended):
                if event.turn_id == self._top:
                    self._print_final()
                often = "once" if ended.continuations == 1 else f"{ended.continuations} times"
                replies = f"{ended.iterations} repl{'y' if ended.iterations == 1 else 'ies'}"
                used = f"{replies}, continued {often}, {ended.usage.total:,} tokens"
                return [f"· {'waits' if ended.reason is Reason.WAITING else f'ended as {ended.reason}'}: {used}"]
        return []

    def _started(self, event: TurnStarted) -> str:
        word = f"{'resumed' if event.resumed else 'started'} with {visible(event.model)}"
        if event.parent is not None:
            return word
        self._top, self._tasks = event.turn_id, ()
        self._mode = "continuation is off" if event.continuations is None else _mode(0, event.continuations)
        limit = f"at most {event.continuations} continuations" if event.continuations else self._mode
        return f"· {visible(event.agent)} {word} ({limit})"

    # --- drawing ------------------------------------------------------------------------------------------

    def _print(self, line: str) -> None:
        self.erase()
        wide = min(terminal_width() - 1, MAX_LINE_LENGTH) if self._live else MAX_LINE_LENGTH
        self._write(line if len(line) <= wide else f"{line[: wide - 1]}…")
        self._draw()

    def _draw(self) -> None:
        if not self._live or not self._tasks:
            return
        self.erase()
        drawn = self._box()
        self._write("\n".join(drawn))
        self._drawn = len(drawn)

    def _box(self) -> list[str]:
        done = sum(task.status in ("completed", "cancelled") for task in self._tasks)
        # A task takes up to two lines. Lines that scrolled off the screen cannot be erased.
        limit = min(MAX_TASKS, max(1, (terminal_height() - _AROUND) // MAX_LINES_PER_ITEM)) if self._live else MAX_TASKS
        first = max(0, min(done - 2, len(self._tasks) - limit))
        shown = self._tasks[first : first + limit]
        labels = [(ICONS.get(task.status, "?"), _label(task)) for task in shown]
        more = len(self._tasks) - len(shown)
        footer = f"{done}/{len(self._tasks)} ended{f', {more} not shown' if more else ''} · {self._mode}"
        return render_frame(labels, footer, terminal_width())

    def _write(self, text: str, end: str = "\n") -> None:
        # A closed stderr must not stop the agent.
        with suppress(OSError):
            print(text, end=end, file=self._screen, flush=True)

    def erase(self) -> None:
        """Erase the list, so that a line can be printed in its place."""
        if self._drawn:
            self._write(f"\x1b[{self._drawn}F\x1b[J", end="")
            self._drawn = 0

    def _print_final(self) -> None:
        """Print the list a last time; later lines come below it."""
        self.erase()
        if self._tasks:
            self._write("\n".join(self._box()))
        self._tasks = ()


def _mode(count: int, limit: int) -> str:
    return f"continued {count} of {limit} times"


def _label(task: ListItem) -> str:
    return visible(f"{task.title}{f' ({task.note})' if task.note else ''}")


def _first_line(text: str) -> str:
    return visible(next(iter(text.strip().splitlines()), ""))


def _subject(request: ToolCallRequest) -> str:
    """The main argument of a call."""
    arguments: Any = request.arguments
    if not isinstance(arguments, Mapping):
        return ""
    line = _first_line(next((arguments[name] for name in SUBJECTS if isinstance(arguments.get(name), str)), ""))
    return line if len(line) <= MAX_SUBJECT_LENGTH else f"{line[: MAX_SUBJECT_LENGTH - 1]}…"


def _plan_result(tool: str, data: Any) -> str:
    """The result of a plan tool as text; empty for other tools."""
    match tool, data:
        case "create_todo", {"created": [*created]}:
            return f"{len(created)} task{'' if len(created) == 1 else 's'} planned"
        case "complete_todo", {"title": title, "retry": True}:
            return f"“{title}” failed and will be retried"
        case "complete_todo", {"title": title, "status": status, "outcome": outcome}:
            return f"“{title}” {status}: {outcome}"
        case "start_todo", {"title": title}:
            return f"“{title}”"
        case "list_todo", {"summary": {"total": total, "pending": pending, "inProgress": running}}:
            return f"{total} tasks, {pending + running} open"
    return ""


def _call_lines(call: ToolCall) -> list[str]:
    """One line for a call that waits or has ended."""
    tool = " ".join(part for part in (visible(call.request.tool), _subject(call.request)) if part)
    match call:
        case SuccessfulToolCall(result=result):
            return [f"✓ {tool}  {_first_line(_plan_result(call.request.tool, result.data) or result.text)}"]
        case ErroredToolCall(error=error) if error.code == UnfinishedCode.SUSPENDED:
            return [f"? {tool} waits: {_first_line(error.message)}"]
        case ErroredToolCall(error=error):
            return [f"✗ {tool}  {_first_line(error.message)}"]
        case CancelledToolCall(not_started=True):
            return [f"? {tool} comes after a call that waits"]
        case CancelledToolCall(reason=reason):
            return [f"✗ {tool}  {_first_line(reason)}"]
        case WaitingToolCall(question=question):
            return [f"? {tool} waits for approval: {_first_line(question.why)}"]
    return []
