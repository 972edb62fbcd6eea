"""`--plain`: for screen readers and simple terminals. Lines only, no colour, no cursor movement, words for signs.

A thread reads lines from standard input, another one watches the database; both wake the main thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, TextIO

from punchlist.agent.message_kinds import ENDING
from punchlist.kernel.text import visible, visible_block
from punchlist.storage.change_watch import ChangeWatch
from punchlist.surfaces.figures import format_seconds
from punchlist.surfaces.tui.display_text import block, line
from punchlist.surfaces.tui.entries import CallEntry, Entry, ListEntry, NoteEntry, ReplyEntry, SaidEntry
from punchlist.surfaces.tui.entry_lines import list_change
from punchlist.surfaces.tui.external_editor import discard_typed_keys
from punchlist.surfaces.tui.line_modes.answers import answer_choices
from punchlist.surfaces.tui.line_modes.line_chat import LineChat, Question
from punchlist.surfaces.tui.list_changes import list_change_words
from punchlist.surfaces.tui.markdown_lines import BULLETS, markdown_lines
from punchlist.surfaces.tui.slash_commands.model import ConfirmAction, MessageLevel

if TYPE_CHECKING:
    from punchlist.surfaces.tui.backend import Backend
    from punchlist.surfaces.tui.screen_state import PendingApproval

TICK_SECONDS: Final = 0.2
PAGE_WIDTH: Final = 1_000
RULES: Final = " ─┼"
"""What a line consists of that only draws."""
MAX_FAILED_LINES: Final = 4
_ENDED: Final = {"success": "finished", "error": "failed", "cancelled": "was cancelled"}
_LEVELS: Final = {MessageLevel.WARNING: "Warning: ", MessageLevel.ERROR: "Error: "}


class PlainOutput:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show_entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            for text in entry_words(entry):
                self._print(text)

    def say(self, text: str, level: MessageLevel = MessageLevel.INFO) -> None:
        self._print(f"{_LEVELS.get(level, '')}{visible_block(text)}")

    def ask_approval(self, approval: PendingApproval) -> None:
        self._print(f"Approval needed: {line(approval.tool)}. Reason: {line(approval.why)}.")
        self._print(block(approval.question))
        self._print("Type one of these and press Enter.")
        for choice in answer_choices(approval):
            self._print(visible(choice))
        discard_typed_keys()

    def ask(self, question: Question) -> None:
        if isinstance(question, ConfirmAction):
            if question.detail:
                self._print(block(question.detail))
            self._print(f"{visible(question.question)} Type yes or no and press Enter.")
        else:
            self._print("These commands will run:")
            for command in question.commands:
                self._print(visible(command))
            self._print("Type yes or no and press Enter.")

    def _print(self, text: str) -> None:
        # A reader that has gone must not stop the work.
        with suppress(OSError):
            print(text, file=self._stream, flush=True)


def entry_words(entry: Entry) -> Iterator[str]:
    """An entry in words, line by line."""
    match entry:
        case SaidEntry(text=text):
            yield f"You: {block(text)}"
        case ReplyEntry(text=text, depth=depth, agent=agent):
            yield f"{f'Worker {line(agent)}' if depth else 'Agent'}: {markdown_words(text)}"
        case NoteEntry(kind=kind, text=text, depth=depth) if kind == ENDING:
            first, *left = block(text.strip()).split("\n")
            yield f"{'Worker' if depth else 'Turn'} ended: {first}"
            yield from () if depth else left
        case NoteEntry(text=text):
            yield f"Note: {line(next(iter(text.strip().splitlines()), ''))}"
        case ListEntry():
            yield f"List: {line(list_change_words(entry.before, entry.after))}"
        case CallEntry():
            yield from _call_words(entry)


def markdown_words(text: str) -> str:
    """The text without Markdown's marks, each paragraph in one line."""
    lines = [content.plain.rstrip() for content in markdown_lines(text, PAGE_WIDTH)]
    return "\n".join(_words(part) for part in lines if part.strip(RULES))


def _words(text: str) -> str:
    """A line without drawn edges; a bullet becomes a dash."""
    bare = text.removeprefix("│ ")
    indent = len(bare) - len(bare.lstrip())
    return f"{bare[:indent]}- {bare[indent + 2 :]}" if bare[indent : indent + 1] in set(BULLETS) else bare


def _call_words(entry: CallEntry) -> Iterator[str]:
    subject = line(list_change(entry) or entry.subject, 300)
    edited = f" edited by {line(entry.edited_by, 40)}," if entry.edited_by else ""
    took = f" after {format_seconds(entry.seconds)}" if entry.seconds is not None else ""
    about = f", {subject}," if subject else ""
    yield f"Tool {line(entry.tool)}{about}{edited} {_ENDED.get(entry.status, entry.status)}{took}."
    if entry.status != "success" and entry.output.strip():
        yield from block(entry.output).strip().splitlines()[:MAX_FAILED_LINES]


class PlainChat:
    def __init__(self, backend: Backend, session: str, stdin: TextIO, stdout: TextIO) -> None:
        self._output = PlainOutput(stdout)
        self._chat = LineChat(backend, session, self._output)
        self._stdin = stdin
        self._inbox: SimpleQueue[tuple[str, float] | None] = SimpleQueue()
        """Typed lines with their time; None only wakes the loop."""
        self._at_end = False
        self._leaves_start = False
        """Ctrl+C was pressed while a turn was about to begin."""
        self._announced = ""
        self._ended = threading.Event()
        self._chat.on_notice = lambda: self._inbox.put(None)

    def run(self, goal: str | None = None) -> None:
        """Until the person quits. At the end of piped input, until the work has ended."""
        for work in (self._read_lines, self._watch):
            threading.Thread(target=work, daemon=True).start()
        self._output.say(f"Session {self._chat.session}. Type a message and press Enter. /help lists the commands.")
        if goal:
            self._chat.submit(goal)
        try:
            while not self._is_over():
                try:
                    self._step()
                except KeyboardInterrupt:
                    self._interrupted()
        finally:
            self._ended.set()
        if farewell := self._chat.farewell():
            self._output.say(farewell)

    def _step(self) -> None:
        update = self._chat.poll()
        self._leaves_start &= not update.state.is_running
        self._announce("Working." if self._chat.is_running else "Ready.", bool(update.state.turn))
        try:
            typed = self._inbox.get(timeout=TICK_SECONDS)
        except Empty:
            return
        if typed is not None:
            self._chat.enter(*typed)

    def _is_over(self) -> bool:
        if self._chat.is_finished:
            return True
        if not self._at_end or not self._inbox.empty():
            return False
        if self._stdin.isatty():
            return True
        state = self._chat.state
        if state is None or (self._chat.is_running and not state.approvals):
            return False
        # Piped input has no more answers for a call that waits for approval.
        return not state.queued or bool(state.approvals)

    def _announce(self, text: str, any_turn: bool) -> None:
        """Say once when work begins and ends."""
        if text != self._announced and (any_turn or text == "Working."):
            self._announced = text
            self._output.say(text)

    def _interrupted(self) -> None:
        """Quit only if nothing works and nothing is about to, as of now."""
        self._chat.poll()
        if not self._chat.is_running or self._leaves_start:
            self._chat.is_finished = True
        elif self._chat.interrupt():
            self._output.say("Interrupted. Press Ctrl+C again to quit.")
        else:
            self._leaves_start = True
            self._output.say("The agent is about to begin. Press Ctrl+C again to leave it working and quit.")

    def _read_lines(self) -> None:
        # A closed terminal is the end of input.
        with suppress(OSError, ValueError):
            while text := self._stdin.readline():
                self._inbox.put((text, time.monotonic()))
        self._at_end = True
        self._inbox.put(None)

    def _watch(self) -> None:
        with ChangeWatch(self._chat.backend.services.store) as watch:
            while not self._ended.is_set():
                if watch.wait(TICK_SECONDS):
                    self._inbox.put(None)
