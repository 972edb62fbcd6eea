"""`--inline`: finished entries go into the terminal's own scrollback, above a small live area with the prompt.

The alternate screen is never used, so everything that was printed stays and can be scrolled, searched, selected and
copied with the terminal's own means.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

from textual.content import Content

from punchlist.errors import ConfigError
from punchlist.kernel.text import visible, visible_block
from punchlist.storage.change_watch import ChangeWatch
from punchlist.surfaces.tui.completion import Completion, CompletionKind, token_at
from punchlist.surfaces.tui.composer_source import SessionSource
from punchlist.surfaces.tui.display_text import assemble, block, cut, fold, hang, line
from punchlist.surfaces.tui.entry_lines import entry_lines
from punchlist.surfaces.tui.external_editor import discard_typed_keys, edit_text
from punchlist.surfaces.tui.line_modes.ansi_lines import ansi
from punchlist.surfaces.tui.line_modes.answers import answer_choices
from punchlist.surfaces.tui.line_modes.inline_screen import (
    BRACKETED_PASTE_OFF,
    BRACKETED_PASTE_ON,
    InlineScreen,
)
from punchlist.surfaces.tui.line_modes.line_chat import LineChat, Question
from punchlist.surfaces.tui.line_modes.line_editor import LineEditor
from punchlist.surfaces.tui.line_modes.live_lines import LiveLines, prompt_lines
from punchlist.surfaces.tui.line_modes.terminal_keys import KeyDecoder, TypedKey
from punchlist.surfaces.tui.pastes import Pastes
from punchlist.surfaces.tui.prompt_history import HistoryCursor, PromptHistory
from punchlist.surfaces.tui.slash_commands.model import ConfirmAction, MessageLevel

if TYPE_CHECKING:
    from punchlist.surfaces.tui.backend import Backend
    from punchlist.surfaces.tui.entries import Entry
    from punchlist.surfaces.tui.screen_state import PendingApproval

TICK_SECONDS: Final = 0.25
STILL_SECONDS: Final = 5.0
"""Between two redraws while nothing runs, and with reduced motion."""
ESCAPE_SECONDS: Final = 0.05
QUIT_SECONDS: Final = 2.0
MAX_CANDIDATES: Final = 6
_LEVELS: Final = {MessageLevel.INFO: "$quiet", MessageLevel.WARNING: "$needs-you", MessageLevel.ERROR: "$failed"}


class InlineOutput:
    """Collects permanent lines until the next update of the screen."""

    def __init__(self, *, color: bool) -> None:
        self._color = color
        self._lines: list[str] = []

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def show_entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._add(entry_lines(entry, columns()))

    def say(self, text: str, level: MessageLevel = MessageLevel.INFO) -> None:
        for part in visible_block(text).split("\n"):
            self._add(Content.styled(part, _LEVELS[level]).wrap(columns()))

    def ask_approval(self, approval: PendingApproval) -> None:
        sign = Content.styled("◆ ", "bold $needs-you")
        self._add(hang(Content(f"{line(approval.tool)} needs your approval: {line(approval.why)}"), columns(), sign))
        for part in block(approval.question).split("\n"):
            self._add(fold(Content(part), columns(), "  "))
        for choice in answer_choices(approval):
            self._add(hang(Content.styled(line(choice), "$quiet"), columns(), "  "))

    def ask(self, question: Question) -> None:
        if isinstance(question, ConfirmAction):
            texts = [*(block(question.detail).split("\n") if question.detail else ()), visible(question.question)]
        else:
            texts = ["Run these commands?", *(f"  {visible(command)}" for command in question.commands)]
        for text in texts:
            self._add(Content.styled(text, "$needs-you").wrap(columns()) if text else [Content("")])
        self._add([Content.styled("  yes or no", "$quiet")])

    def _add(self, lines: Sequence[Content]) -> None:
        self._lines += [ansi(each, color=self._color) for each in lines]


class InlineChat:
    def __init__(self, backend: Backend, session: str, stdin: TextIO, stdout: TextIO) -> None:
        self._color = not os.environ.get("NO_COLOR")
        self._output = InlineOutput(color=self._color)
        self._chat = LineChat(backend, session, self._output)
        self._screen = InlineScreen(stdout, columns)
        self._stdin, self._stdout = stdin, stdout
        self._editor, self._keys, self._pastes = LineEditor(), KeyDecoder(), Pastes()
        self._history = PromptHistory.of_project(backend.services.workspace, os.environ)
        self._recall: HistoryCursor | None = None
        self._source = SessionSource(
            backend.services, backend.scope(session), lambda: self._chat.registry, self._chat.context
        )
        self._candidates: Sequence[Completion] = ()
        self._live = LiveLines(animated=not os.environ.get("PUNCHLIST_REDUCED_MOTION"))
        self._typed_at: float | None = None
        self._quit_at = float("-inf")
        self._ended = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        self._chat.on_notice = self._wake
        self._chat.edit_text = self._edit_text

    def run(self, goal: str | None = None) -> None:
        """Until the person quits."""
        self._output.say(f"Session {self._chat.session} · /help lists the commands · Ctrl+C twice quits")
        if goal:
            self._chat.submit(goal)
        threading.Thread(target=self._watch, daemon=True, name="changes").start()
        with self._raw_terminal(), selectors.DefaultSelector() as selector:
            selector.register(self._stdin.fileno(), selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            try:
                while not self._chat.is_finished:
                    self._step(selector)
            finally:
                self._ended.set()
                self._screen.update(self._output.take(), [])
                self._screen.clear()
        if farewell := self._chat.farewell():
            print(visible(farewell), file=self._stdout, flush=True)

    def _step(self, selector: selectors.BaseSelector) -> None:
        self._draw()
        busy = self._chat.is_running and self._live.animated
        for key, _ in selector.select(TICK_SECONDS if busy else STILL_SECONDS):
            if key.fd == self._wake_read:
                os.read(self._wake_read, 4_096)
                continue
            data = os.read(key.fd, 65_536)
            if not data:
                self._chat.is_finished = True
                return
            typed = self._keys.feed(data)
            if self._keys.is_incomplete and not _is_ready(key.fd, ESCAPE_SECONDS):
                typed += self._keys.flush()
            for one in typed:
                self._press(one)

    def _draw(self) -> None:
        update = self._chat.poll()
        room = max(columns() - 1, 20)
        height = max(shutil.get_terminal_size().lines - 1, 4)
        prompt, cursor = prompt_lines(self._editor, room, answer=self._chat.waits_for_answer)
        candidates = [
            cut(
                assemble(
                    (f"  {visible(each.label)}  ", "$working" if number == 0 else ""), (each.description, "$quiet")
                ),
                room,
            )
            for number, each in enumerate(self._candidates[:MAX_CANDIDATES])
        ]
        status = self._live.status(self._chat, update, room)
        above = self._live.above(self._chat, update, room)
        free = height - len(prompt) - len(candidates) - len(status)
        above = above[-free:] if free > 0 else []
        lines = [*above, *prompt[-height:], *candidates, *status]
        row = len(above) + cursor[0]
        shown = [ansi(each, color=self._color) for each in lines]
        self._screen.update(self._output.take(), shown, (min(row, len(lines) - 1), cursor[1]))

    # --- keys -----------------------------------------------------------------------------------------------------

    def _press(self, key: TypedKey) -> None:
        if self._typed_at is None:
            self._typed_at = time.monotonic()
        own = {
            "text": lambda: self._editor.insert(visible_block(key.text)),
            "paste": lambda: self._editor.insert(self._pastes.hold(key.text)),
            "enter": self._enter,
            "tab": self._complete,
            "up": lambda: self._move("up"),
            "down": lambda: self._move("down"),
            "interrupt": self._interrupt,
            "end_of_input": self._end_input,
            "escape": self._escape,
            "editor": self._open_editor,
        }
        if key.name in own:
            own[key.name]()
        else:
            self._editor.press(key.name)
        if key.name not in ("up", "down"):
            self._recall = None
        self._offer()

    def _end_input(self) -> None:
        self._chat.is_finished = not self._editor.text

    def _enter(self) -> None:
        if self._editor.line_before_cursor.endswith("\\"):
            self._editor.press("backspace")
            self._editor.press("newline")
            return
        text = self._pastes.expand(self._editor.text).strip()
        first, self._typed_at = self._typed_at, None
        self._editor.set("")
        self._pastes.clear()
        if not self._chat.waits_for_answer:
            self._history.add(text)
        self._chat.enter(text, first)

    def _move(self, key: str) -> None:
        step = -1 if key == "up" else 1
        at_edge = self._editor.on_first_line if key == "up" else self._editor.on_last_line
        if not at_edge and self._recall is None:
            self._editor.press(key)
            return
        if self._recall is None:
            self._recall = HistoryCursor(self._history.entries, self._editor.text)
        text = self._recall.move(step)
        if text is not None:
            self._editor.set(text)

    def _escape(self) -> None:
        if self._candidates:
            self._candidates = ()
        elif self._chat.is_running:
            self._chat.interrupt()
            self._output.say("Interrupted.")

    def _interrupt(self) -> None:
        now = time.monotonic()
        if now - self._quit_at < QUIT_SECONDS:
            self._chat.is_finished = True
        elif self._editor.text:
            self._editor.set("")
        else:
            self._quit_at = now
            self._output.say("Press Ctrl+C again to quit. Esc interrupts the agent.")

    def _open_editor(self) -> None:
        edited = self._edit_text(self._pastes.expand(self._editor.text), ".md")
        if edited is not None:
            self._editor.set(visible_block(edited))

    def _edit_text(self, text: str, suffix: str = ".json") -> str | None:
        self._screen.clear()
        try:
            edited = edit_text(text, os.environ, suffix=suffix, terminal=self._cooked_terminal)
        except ConfigError as error:
            self._output.say(str(error), MessageLevel.ERROR)
            return None
        discard_typed_keys()
        return edited

    # --- completion -----------------------------------------------------------------------------------------------

    def _offer(self) -> None:
        token = token_at(self._editor.line_before_cursor, first_line=self._editor.on_first_line)
        if token is None or self._recall is not None:
            self._candidates = ()
        elif token.kind is CompletionKind.SLASH:
            self._candidates = self._source.slash_completions(token.text)
        elif token.kind is CompletionKind.PATH:
            self._candidates = self._source.paths(token.text)
        else:
            self._candidates = self._source.items(token.text)

    def _complete(self) -> None:
        """Accept the first candidate; without one, send or queue the message."""
        token = token_at(self._editor.line_before_cursor, first_line=self._editor.on_first_line)
        chosen = next(iter(self._candidates), None)
        if token is None or chosen is None:
            self._enter()
        else:
            self._editor.replace_before(self._editor.line_start + token.start, chosen.insert)

    # --- the terminal ---------------------------------------------------------------------------------------------

    @contextmanager
    def _raw_terminal(self) -> Iterator[None]:
        """Keys arrive one by one and unchanged; output keeps its line ends."""
        fd = self._stdin.fileno()
        before = termios.tcgetattr(fd)
        self._set_raw(before)
        resized = signal.signal(signal.SIGWINCH, lambda *_: self._wake())
        self._stdout.write(BRACKETED_PASTE_ON)
        self._stdout.flush()
        try:
            yield
        finally:
            signal.signal(signal.SIGWINCH, resized)
            with suppress(OSError):
                self._stdout.write(BRACKETED_PASTE_OFF)
                self._stdout.flush()
            termios.tcsetattr(fd, termios.TCSADRAIN, before)

    @contextmanager
    def _cooked_terminal(self) -> Iterator[None]:
        fd = self._stdin.fileno()
        raw = termios.tcgetattr(fd)
        cooked = list(raw)
        cooked[0] |= termios.ICRNL | termios.IXON
        cooked[3] |= termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
        termios.tcsetattr(fd, termios.TCSADRAIN, cooked)
        try:
            yield
        finally:
            termios.tcsetattr(fd, termios.TCSADRAIN, raw)

    def _set_raw(self, before: list[Any]) -> None:
        raw = list(before)
        raw[0] &= ~(termios.ICRNL | termios.IXON)
        raw[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(self._stdin.fileno(), termios.TCSADRAIN, raw)

    def _wake(self) -> None:
        with suppress(OSError):
            os.write(self._wake_write, b".")

    def _watch(self) -> None:
        with ChangeWatch(self._chat.backend.services.store) as watch:
            while not self._ended.is_set():
                if watch.wait(TICK_SECONDS):
                    self._wake()


def columns() -> int:
    return max(shutil.get_terminal_size().columns, 20)


def _is_ready(fd: int, seconds: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(seconds))
