"""A conversation by lines: what was typed becomes a message, a slash command or an answer; what happens is printed.

Inline and plain mode differ in how they read and print; this part is the same in both. It runs in one thread. Calls
that take long, such as starting a turn, run in others and report through `notices`.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol

from punchlist.errors import PunchlistError
from punchlist.surfaces.tui.approval_lines import edited_approval
from punchlist.surfaces.tui.arguments_text import parse_arguments
from punchlist.surfaces.tui.line_modes.answers import QUIET_SECONDS, parse_answer, parse_yes_no
from punchlist.surfaces.tui.line_modes.chat_feed import ChatFeed, FeedUpdate
from punchlist.surfaces.tui.line_modes.dialog_text import dialog_text
from punchlist.surfaces.tui.screen_state import GoOn
from punchlist.surfaces.tui.slash_commands.builtin import open_registry
from punchlist.surfaces.tui.slash_commands.model import (
    ConfirmAction,
    ConfirmShellCommands,
    DialogName,
    LoadHistory,
    MessageLevel,
    OpenDialog,
    QuitApplication,
    ScheduleTool,
    ShowMessage,
    SlashContext,
    SlashResult,
    SubmitPrompt,
)

if TYPE_CHECKING:
    from punchlist.surfaces.tui.backend import Backend
    from punchlist.surfaces.tui.entries import Entry
    from punchlist.surfaces.tui.screen_state import ConversationState, PendingApproval

Question = ConfirmAction | ConfirmShellCommands


GO_ON_SECONDS: Final = 1.0
LATE_SECONDS: Final = 60.0
QUESTION_WAITS: Final = "A question waits: type yes, no, always or edit."
NO_QUESTION: Final = "No question waits any more, so nothing was sent. Write it in other words to send it."


class LineOutput(Protocol):
    def show_entries(self, entries: Sequence[Entry]) -> None: ...

    def say(self, text: str, level: MessageLevel = MessageLevel.INFO) -> None: ...

    def ask_approval(self, approval: PendingApproval) -> None: ...

    def ask(self, question: Question) -> None: ...


class LineChat:
    def __init__(
        self, backend: Backend, session: str, output: LineOutput, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.backend = backend
        self.session = session
        self.is_finished = False
        self.notices: SimpleQueue[Callable[[], None]] = SimpleQueue()
        """What other threads have to say."""
        self.on_notice: Callable[[], None] = lambda: None
        """Wakes the reader of `notices`."""
        self.edit_text: Callable[[str], str | None] = lambda _: None
        """Edits a text in the person's editor; None where there is none."""
        self._output = output
        self._monotonic = monotonic
        self._feed = ChatFeed(backend, session)
        self._asked: PendingApproval | None = None
        self._asked_at = 0.0
        self._last_asked: PendingApproval | None = None
        """A question that ended without an answer from here."""
        self._answerable_at = 0.0
        """When it was last waiting."""
        self._question: Question | None = None
        self.registry, problems = open_registry(backend.services, os.environ)
        self.update: FeedUpdate | None = None
        self._starting = False
        self._go_on = GoOn.NOTHING
        self._go_on_at = 0.0
        self._told_go_on = False
        for problem in problems:
            output.say(problem, MessageLevel.WARNING)

    @property
    def state(self) -> ConversationState | None:
        return self.update.state if self.update is not None else None

    @property
    def is_running(self) -> bool:
        """Whether a turn runs or is about to."""
        return self._starting or (self.state is not None and self.state.is_running)

    @property
    def waits_for_answer(self) -> bool:
        return self._asked is not None or self._question is not None

    # --- what happens -------------------------------------------------------------------------------------------

    def poll(self) -> FeedUpdate:
        while not self.notices.empty():
            self.notices.get()()
        self.update = update = self._feed.poll()
        self._output.show_entries(update.finished)
        self._tell_how_to_go_on(update.state)
        first = next(iter(update.state.approvals), None)
        if first is None:
            if self._asked is not None:
                # It was answered elsewhere, or its turn has ended.
                self._last_asked, self._answerable_at = self._asked, self._monotonic()
            self._asked = None
        elif self._asked is None or first.call_id != self._asked.call_id:
            self._asked, self._asked_at = first, self._monotonic()
            self._output.ask_approval(first)
        return update

    def _tell_how_to_go_on(self, state: ConversationState) -> None:
        """Say once that a turn was interrupted, or that a queue was left."""
        go_on, now = GoOn.NOTHING if self.is_running else state.go_on, self._monotonic()
        if go_on is not self._go_on:
            self._go_on, self._go_on_at, self._told_go_on = go_on, now, False
        # Between two turns, the queue seems left for a moment.
        if self._told_go_on or now - self._go_on_at < GO_ON_SECONDS:
            return
        self._told_go_on = True
        if go_on is GoOn.RESUME:
            self._output.say("The process of the turn has died. /continue resumes it.", MessageLevel.WARNING)
        elif go_on is GoOn.DELIVER:
            self._output.say(f"Queued and not sent: {len(state.queued)}. /continue sends the first.")

    # --- what the person types ----------------------------------------------------------------------------------

    def enter(self, text: str, typed_at: float | None = None) -> None:
        """Handle a line. `typed_at` is when its first key was pressed; default: now."""
        text = text.strip()
        if not text:
            return
        try:
            self._enter(text, self._monotonic() if typed_at is None else typed_at)
        except PunchlistError as error:
            self._output.say(str(error), MessageLevel.ERROR)

    def _enter(self, text: str, typed_at: float) -> None:
        if self._question is not None and (yes := parse_yes_no(text)) is not None:
            question, self._question = self._question, None
            self._answer_question(question, yes)
        elif self._asked is not None and (answer := parse_answer(text, self._asked)) is not None:
            if typed_at - self._asked_at < QUIET_SECONDS:
                self._output.say("That was typed before the question could be read. Please answer again.")
                return
            if answer.answer == "edit":
                self._edit(self._asked, answer.arguments)
                return
            asked, self._asked = self._asked, None
            self.backend.answer_approval(asked, answer.answer, reason=answer.reason)
            self._output.say("Denied." if answer.answer == "deny" else "Allowed.")
        elif self._answered_late(text):
            self._output.say(NO_QUESTION)
        elif text.startswith("!") and text[1:].strip():
            self._run(f"/shell {text[1:].strip()}", self._context())
        elif text.startswith("/") and "/" not in text.split(maxsplit=1)[0][1:]:
            self._run(text, self._context())
        else:
            self.submit(text)

    def _edit(self, asked: PendingApproval, written: str) -> None:
        """Ask about the call with other arguments: those after `edit`, else those from the person's editor."""
        before = json.dumps(dict(asked.arguments), ensure_ascii=False)
        if not written:
            edited = self.edit_text(json.dumps(dict(asked.arguments), indent=2, ensure_ascii=False))
            if edited is None:
                self._output.say(f"Type edit and the new arguments as JSON. They are now:\nedit {before}")
                return
            written = edited
        arguments, problem = parse_arguments(written)
        if arguments is None:
            self._output.say(problem, MessageLevel.ERROR)
            return
        self._asked, self._asked_at = edited_approval(asked, arguments), self._monotonic()
        self._output.ask_approval(self._asked)

    def _answered_late(self, text: str) -> bool:
        """Whether the text reads as the answer to the last question, which ended within `LATE_SECONDS`."""
        late = self._monotonic() - self._answerable_at < LATE_SECONDS
        return self._last_asked is not None and late and parse_answer(text, self._last_asked) is not None

    def submit(self, text: str) -> None:
        """Start a turn, or queue the message while one runs."""
        if self.is_running:
            self.backend.queue(self.session, text)
            number = len(self.backend.conversation(self.session).queued)
            asked = f" {QUESTION_WAITS}" if self.waits_for_answer else ""
            self._output.say(f"Queued as number {number}.{asked}")
            return
        self._starting = True
        self._in_thread(lambda: self.backend.send(self.session, text), self._started)

    def go_on(self) -> None:
        """Continue an interrupted turn; else deliver the first queued message."""
        backend, session = self.backend, self.session
        work = {GoOn.RESUME: backend.resume, GoOn.DELIVER: backend.deliver}.get(backend.conversation(session).go_on)
        if work is None or self.is_running:
            self._output.say("Nothing was interrupted, and nothing is queued.")
            return
        self._starting = True
        self._in_thread(lambda: work(session), self._started)

    def interrupt(self) -> bool:
        """Interrupt the turn; False if none is open."""
        try:
            return self.backend.interrupt(self.session)
        except PunchlistError as error:
            self._output.say(str(error), MessageLevel.ERROR)
            return True

    def farewell(self) -> str:
        """What continues after the person has left; empty if nothing does."""
        if not self.is_running:
            return ""
        return f"Session {self.session} continues in the background. `punchlist chat -s {self.session}` returns to it."

    def _started(self) -> None:
        self._starting = False

    # --- slash commands -----------------------------------------------------------------------------------------

    def context(self) -> SlashContext:
        """For completions."""
        return self._context()

    def _context(self) -> SlashContext:
        backend = self.backend
        return SlashContext(
            backend.services, backend.scope(self.session), backend.options.mode, backend.model, self.is_running
        )

    def _run(self, line: str, context: SlashContext) -> None:
        self._carry_out(self.registry.run(line, context))

    def _carry_out(self, result: SlashResult) -> None:
        match result:
            case ShowMessage():
                self._output.say(result.text, result.level)
            case QuitApplication():
                self.is_finished = True
            case OpenDialog(dialog, argument):
                self._open(dialog, argument)
            case LoadHistory(session):
                self._switch(session)
            case SubmitPrompt(prompt):
                self.submit(prompt)
            case ScheduleTool(tool, arguments, approved):
                self._call(tool, arguments, approved=approved)
            case ConfirmAction() | ConfirmShellCommands():
                self._question = result
                self._output.ask(result)

    def _answer_question(self, question: Question, yes: bool) -> None:
        if not yes:
            self._output.say("Nothing was done.")
            return
        context = self._context()
        if isinstance(question, ConfirmAction):
            self._run(question.line, replace(context, confirmed=True))
            return
        from punchlist.surfaces.tui.person_calls import run_commands

        output = run_commands(self.backend.services, question.commands)
        self._run(question.line, replace(context, shell_output=output))

    def _open(self, dialog: DialogName, argument: str) -> None:
        if dialog is DialogName.GO_ON:
            self.go_on()
        elif dialog is DialogName.MODE and argument:
            self._set_options(mode=argument)
            self._output.say(f"The mode is {argument} from the next turn on.")
        elif dialog is DialogName.MODEL and argument:
            self._set_options(model=argument)
            self._output.say(f"The model is {argument} from the next turn on.")
        else:
            self._output.say(dialog_text(self.backend, self.session, dialog, argument))

    def _set_options(self, **chosen: str) -> None:
        self.backend.set_options(**chosen)
        self.backend.share_options(self.session)

    def _switch(self, session: str) -> None:
        self.session = session
        self._feed = ChatFeed(self.backend, session)
        self._asked = self._question = None
        self._output.say(f"Session {session}.")

    def _call(self, tool: str, arguments: Mapping[str, Any], *, approved: bool) -> None:
        from punchlist.surfaces.tui.entries import CallEntry

        session = self.session

        def show(entry: CallEntry) -> None:
            if entry.has_ended:
                self._notify(lambda: self._output.show_entries([entry]))

        self._in_thread(lambda: self.backend.call_tool(session, tool, arguments, show, approved=approved))

    # --- other threads ------------------------------------------------------------------------------------------

    def _in_thread(self, work: Callable[[], object], then: Callable[[], None] = lambda: None) -> None:
        def run() -> None:
            try:
                work()
            except PunchlistError as error:
                message = str(error)
                self._notify(lambda: self._output.say(message, MessageLevel.ERROR))
            finally:
                self._notify(then)

        threading.Thread(target=run, daemon=True, name="chat action").start()

    def _notify(self, notice: Callable[[], None]) -> None:
        self.notices.put(notice)
        self.on_notice()
