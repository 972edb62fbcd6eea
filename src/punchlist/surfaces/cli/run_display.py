"""Shows a run on stderr.

On a terminal, the model's text is shown as it arrives, each tool call is one line, and below them are the list, the
running calls and a line with the time, tokens and cost. Elsewhere each event is one line, without control characters.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, TextIO

from punchlist.agent import events
from punchlist.agent.list_state import ListItem
from punchlist.agent.turn_model import TurnResult
from punchlist.checklist.render import MAX_LINES_PER_ITEM
from punchlist.kernel.text import one_line, visible
from punchlist.kernel.token_estimate import CHARACTERS_PER_TOKEN, weighted_length
from punchlist.models.model import REPLY_BROKEN
from punchlist.surfaces.cli import run_lines
from punchlist.surfaces.cli.context import echo, supports_ansi, supports_color, terminal_height, terminal_width
from punchlist.surfaces.cli.layout import fit_line
from punchlist.surfaces.cli.live_area import LiveArea
from punchlist.surfaces.cli.run_output import RunOutput
from punchlist.surfaces.figures import format_seconds
from punchlist.toolcalls.model import ExecutingToolCall, SuccessfulToolCall, ToolCall, ToolCallRequest

MAX_LINE_LENGTH: Final = 160
MAX_TASKS: Final = 15
"""More would push the event lines off the screen."""
MAX_RUNNING: Final = 3
_AROUND: Final = 8
"""Lines for the frame, the status line and a few events."""
_REDRAW_AFTER: Final = 0.25
"""Seconds without text after which the live lines are drawn below it."""


class RunDisplay(RunOutput):
    def __init__(
        self, screen: TextIO, *, live: bool, color: bool = False, now: Callable[[], float] = monotonic
    ) -> None:
        self._screen = screen
        self._live = self.animated = live
        self._color = color
        self._now = now
        self._area = LiveArea(screen, live=live)
        self._paused = False
        self._held: list[str] = []
        """What to print after the pause."""
        self._frame = 0
        self._texts: list[str] = []
        """Texts of the model that were shown in full."""
        self._turn = _TopTurn()

    @classmethod
    def on_stderr(cls) -> RunDisplay:
        return cls(sys.stderr, live=supports_ansi(sys.stderr), color=supports_color(sys.stderr))

    def show_event(self, event: events.AgentEvent) -> None:
        top = self._turn.id
        if isinstance(event, events.TurnStarted) and event.parent is None:
            self._turn = _TopTurn(event.turn_id, self._now(), event.continuations)
        elif event.turn_id != top:
            self._show_worker(event)
            return
        self._show_top(event)

    def note(self, text: str) -> None:
        self._print(f"· {fit_line(one_line(text), MAX_LINE_LENGTH)}")

    def pause(self) -> None:
        self._area.erase()
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        held, self._held = self._held, []
        for text in held:
            self._area.print(text)
        self._draw()

    def tick(self) -> None:
        self._frame += 1
        # While text arrives, it shows that the model works, and drawing would only flicker.
        if self._turn.streamed and self._now() - self._turn.text_at < _REDRAW_AFTER:
            return
        self._draw()

    def close(self) -> None:
        self._area.erase()

    def show_result(self, result: dict[str, Any], ended: TurnResult) -> None:
        del result
        if ended.last_text and not self._has_shown(ended.last_text):
            echo(run_lines.answer_text(ended.last_text))

    def _has_shown(self, answer: str) -> bool:
        """Whether the person reads the answer on the terminal of stdout already."""
        if not (self._live and _same_terminal(sys.stdout, self._screen)):
            return False
        rest = answer
        for text in self._texts:
            rest = rest.replace(text, "", 1)
        return not rest.strip()

    # --- events -------------------------------------------------------------------------------------------

    def _show_top(self, event: events.AgentEvent) -> None:
        turn = self._turn
        match event:
            case events.TurnStarted():
                word = "resumed" if event.resumed else "started"
                limit = f"at most {event.continuations} continuations" if event.continuations else turn.mode
                self._print(f"· {visible(event.agent)} {word} with {visible(event.model)} ({limit})")
            case events.TextDelta(text=text):
                self._stream(text)
            case events.ReplyReceived():
                self._end_reply(event)
            case events.ListChanged(lists=lists):
                turn.items = lists.items
                self._draw()
            case events.Continued(count=count, limit=limit):
                self._print_text_of_reply()
                turn.continued, turn.limit = count, limit
                self._print(f"· stopped early; {turn.mode}")
            case events.TurnEnded(result=ended):
                if turn.text not in ended.last_text:
                    self._print_text_of_reply()
                self._print_list()
                self._print(run_lines.ended_line(ended, self._now() - turn.started_at))
                self._area.erase()
            case _:
                self._show_any(event, "")

    def _show_worker(self, event: events.AgentEvent) -> None:
        prefix = f"  {visible(event.agent)} "
        match event:
            case events.TurnStarted():
                self._print(f"{prefix}{'resumed' if event.resumed else 'started'} with {visible(event.model)}")
            case events.ReplyReceived(text=text):
                self._turn.charge(event)
                if event.calls and text.strip():
                    self._print(f"{prefix}  {run_lines.first_line(text)}")
            case events.Continued(count=count, limit=limit):
                self._print(f"{prefix}· stopped early; {run_lines.mode_text(count, limit)}")
            case events.TurnEnded(result=ended):
                self._print(prefix + run_lines.ended_line(ended, None))
            case _:
                self._show_any(event, prefix)

    def _show_any(self, event: events.AgentEvent, prefix: str) -> None:
        match event:
            case events.CallChanged(call=call):
                self._show_call(call, prefix)
            case events.ToolOutput(call_id=id, text=text) if id in self._turn.running:
                if last := run_lines.first_line(text.rstrip().rpartition("\n")[2]):
                    self._turn.running[id].output = last
            case events.NoteAdded(text=text):
                self._print(f"{prefix}· {fit_line(run_lines.first_line(text), MAX_LINE_LENGTH)}")
            case events.ContextCompacted(before_tokens=before, after_tokens=after, messages=many):
                self._print(f"{prefix}· context compacted: {many} messages, about {before:,} → {after:,} tokens")

    def _show_call(self, call: ToolCall, prefix: str) -> None:
        running, id = self._turn.running, call.request.call_id
        if isinstance(call, ExecutingToolCall):
            running[id] = _RunningCall(call.request, prefix, self._now())
            self._draw()
            return
        before = running.pop(id, None)
        seconds = None if before is None else self._now() - before.started_at
        if isinstance(call, SuccessfulToolCall):
            seconds = (call.ended_at - call.started_at).total_seconds()
        columns = terminal_width() if self._live else MAX_LINE_LENGTH
        if line := run_lines.call_line(call, seconds, columns):
            self._print(prefix + line)

    # --- text of the model --------------------------------------------------------------------------------

    def _stream(self, text: str) -> None:
        turn = self._turn
        turn.streamed += weighted_length(text)
        turn.text_at = self._now()
        if text == REPLY_BROKEN:
            turn.streamed = 0
        if self._live and not self._paused:
            # Line breaks at the start of a reply would leave a gap.
            text = text if turn.text_is_shown else text.lstrip("\n")
            turn.text_is_shown = turn.text_is_shown or bool(text)
            self._area.stream(run_lines.answer_text(text))

    def _end_reply(self, event: events.ReplyReceived) -> None:
        turn, text = self._turn, event.text
        turn.charge(event)
        streamed, turn.streamed = turn.text_is_shown, 0
        turn.text_is_shown = False
        turn.text = text.strip()
        if streamed:
            self._area.end_stream()
            self._remember_text()
        elif self._live or event.calls:
            self._print_text_of_reply()
        self._draw()

    def _print_text_of_reply(self) -> None:
        """Print the text of the last reply, unless it was printed."""
        if self._turn.text:
            shown = run_lines.answer_text(self._turn.text) if self._live else run_lines.indented(self._turn.text)
            self._print_whole(shown)
            self._remember_text()

    def _remember_text(self) -> None:
        if self._turn.text:
            self._texts.append(self._turn.text)
            self._turn.text = ""

    # --- drawing ------------------------------------------------------------------------------------------

    def _print(self, line: str) -> None:
        """Print the line of an event. Lines about the run itself may wrap, others are cut."""
        wide = min(terminal_width() - 1, MAX_LINE_LENGTH) if self._live else MAX_LINE_LENGTH
        line = line if line.startswith("· ") else fit_line(line, max(wide, 1))
        self._print_whole(run_lines.paint(line) if self._color else line)

    def _print_whole(self, text: str) -> None:
        if self._paused:
            self._held.append(text)
            return
        self._area.print(text)
        self._draw()

    def _draw(self) -> None:
        turn = self._turn
        if not self._live or self._paused or not turn.id:
            return
        now, columns = self._now(), terminal_width()
        lines = self._box(columns) if turn.items else []
        lines += [fit_line(call.line(now, columns), columns - 1) for call in list(turn.running.values())[:MAX_RUNNING]]
        tokens = turn.tokens + turn.streamed // CHARACTERS_PER_TOKEN
        auto = run_lines.auto_text(turn.continued, turn.limit)
        lines.append(run_lines.status_line(self._frame, now - turn.started_at, tokens, turn.cost, auto, columns))
        self._area.draw([run_lines.paint(line) for line in lines] if self._color else lines)

    def _box(self, columns: int) -> list[str]:
        # A task takes up to two lines. Lines that scrolled off the screen cannot be erased.
        room = max(1, (terminal_height() - _AROUND) // MAX_LINES_PER_ITEM) if self._live else MAX_TASKS
        return run_lines.list_box(self._turn.items, self._turn.mode, columns, min(MAX_TASKS, room))

    def _print_list(self) -> None:
        """Print the list a last time; later lines come below it."""
        items, turn = self._turn.items, self._turn
        self._area.erase()
        if items:
            box = self._box(terminal_width())
            self._area.print("\n".join(run_lines.paint(line) for line in box) if self._color else "\n".join(box))
        turn.items, turn.id = (), ""


class _RunningCall:
    def __init__(self, request: ToolCallRequest, prefix: str, started_at: float) -> None:
        self._request = request
        self._prefix = prefix
        self.started_at = started_at
        self.output = ""
        """The last line that it has printed."""

    def line(self, now: float, columns: int) -> str:
        name, seconds = (
            run_lines.call_name(self._request, columns),
            format_seconds(int(now - self.started_at)),
        )
        return f"{self._prefix}▶ {name} ({seconds})  {self.output}".rstrip()


class _TopTurn:
    """What is known about the turn that is shown."""

    def __init__(self, id: str = "", started_at: float = 0.0, limit: int | None = None) -> None:
        self.id = id
        self.started_at = started_at
        self.limit = limit
        self.continued = 0
        self.items: Sequence[ListItem] = ()
        self.running: dict[str, _RunningCall] = {}
        self.tokens = 0
        self.cost: float | None = None
        self.streamed = 0
        """Characters of the reply that is being written."""
        self.text_at = 0.0
        self.text_is_shown = False
        self.text = ""
        """The text of the last reply, until it is printed."""

    @property
    def mode(self) -> str:
        return run_lines.mode_text(self.continued, self.limit)

    def charge(self, reply: events.ReplyReceived) -> None:
        self.tokens += reply.usage.total
        if reply.cost is not None:
            self.cost = (self.cost or 0.0) + reply.cost


def _same_terminal(first: TextIO, second: TextIO) -> bool:
    try:
        return first.isatty() and second.isatty() and os.ttyname(first.fileno()) == os.ttyname(second.fileno())
    except OSError:
        return False
