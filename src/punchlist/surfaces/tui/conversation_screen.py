"""One conversation: its history, its list, its approvals, its queue and the prompt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from punchlist.surfaces.tui.approval_panel import ApprovalPanel
from punchlist.surfaces.tui.composer import Composer
from punchlist.surfaces.tui.data_screen import DataScreen
from punchlist.surfaces.tui.dialogs import ChoiceDialog
from punchlist.surfaces.tui.display_text import assemble, line
from punchlist.surfaces.tui.entries import SaidEntry
from punchlist.surfaces.tui.history_feed import HistoryFeed, LoadedEntries
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.prompt_text import PromptText
from punchlist.surfaces.tui.refresh import Refresh
from punchlist.surfaces.tui.screen_state import ConversationState, GoOn
from punchlist.surfaces.tui.status_line import StatusLine
from punchlist.surfaces.tui.status_text import StatusValues, status_values
from punchlist.surfaces.tui.todo_panel import TodoPanel
from punchlist.surfaces.tui.too_small import TooSmall, is_too_small
from punchlist.surfaces.tui.transcript_view import TranscriptView

if TYPE_CHECKING:
    from punchlist.views.live_text import LiveText

WIDE = 110
"""Columns from which the list is beside the history."""
TALL = 40
"""Rows from which the list and a question fit below each other."""
ROOMY = 24
"""Rows from which some of the history stays above a question."""
MIN_HISTORY = 3
QUIET_SECONDS = 1.0
"""After a key, the focus does not move on its own for this long."""
TICK_SECONDS = 0.1
"""While something moves."""
AGE_SECONDS = 1.0
LIVENESS_SECONDS = 2.5
FRAME_SECONDS = 0.05
"""Between two drawings of streamed text."""
TYPING_SECONDS = 0.03
"""After a key, streamed text is not drawn for this long."""
LATE_SECONDS = 0.15
"""It is drawn at least this often."""
MAX_REWIND = 30


def empty_lines(folder: str, model: str) -> Content:
    """What a conversation without entries shows."""
    keys = (
        *(("/", "commands"), ("@", "files"), ("#", "items of the list"), ("?", "all keys")),
        *(("^l", "change the list"), ("^t", "show or hide the list"), ("^b", "Home")),
    )
    parts = [Content(f"A new conversation in {line(folder, 60)}"), Content("")]
    parts.append(Content("Write what should be done and press Enter."))
    if not model:
        parts.append(assemble(("No model is set. ", "$needs-you"), "/model sets one, such as anthropic:… or ollama:…"))
    parts += [Content(""), *(assemble((f"{key:<3}", "bold"), (name, "$quiet")) for key, name in keys)]
    return Content("\n").join(parts)


@dataclass(frozen=True, slots=True)
class _Loaded:
    state: ConversationState
    entries: LoadedEntries


class _Dock(Vertical):
    """What is below the history."""

    class Resized(Message):
        """The prompt or another part has another height."""

    def on_resize(self, _: events.Resize) -> None:
        self.post_message(self.Resized())


class ConversationScreen(DataScreen):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.CONVERSATION)]

    def __init__(self, session: str, at: int | None = None) -> None:
        """`at` is the position of the message to begin with, instead of the newest one."""
        super().__init__()
        self.session = session
        self.history = TranscriptView(id="history")
        self._feed = HistoryFeed(session, self.history, at)
        self.state: ConversationState | None = None
        self.started_at = inf
        """Since when it takes keys."""
        self._refresh: Refresh[_Loaded] | None = None
        self._key_at = 0.0
        self._starts = False
        """Whether a turn is about to begin without a new message."""
        self._turn_before: str | None = None
        """The last turn when a message was sent."""
        self._unseen = 0
        self._loading_older = False
        self._draws_live = False
        self._drawn_at = 0.0
        self._offers_approval = False
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield TooSmall()
        with Container(id="conversation"):
            yield self.history
            yield Static(id="empty", markup=False)
            yield TodoPanel(id="todos")
        with _Dock(id="dock"):
            panel = ApprovalPanel(id="approvals")
            panel.room, panel.take_text = self._approval_room, self._type
            yield panel
            yield self.app.make_composer(self.session)
            yield StatusLine(id="status")

    def start(self) -> None:
        self._refresh = Refresh(self, self._load, self._show, self._fail)
        self._refresh.request()
        self._ticker = self.set_interval(TICK_SECONDS, self._tick, pause=True)
        self.set_interval(AGE_SECONDS, self._show_ages)
        self.set_interval(LIVENESS_SECONDS, self._check_alive)
        self.composer.focus_prompt()
        self.started_at = time.monotonic()
        self.app.call_later(self.app.release_input)

    # --- loading ------------------------------------------------------------------------------------------------

    def data_changed(self) -> None:
        if self._refresh is not None:
            self._refresh.request()

    def _check_alive(self) -> None:
        """The death of a process is no event."""
        if self.state is not None and (self.state.is_running or self.state.host):
            self.data_changed()

    def add_live(self, pieces: Sequence[LiveText]) -> None:
        if self._feed.add_live(pieces):
            self._draw_soon()

    def _draw_soon(self) -> None:
        if not self._draws_live:
            self._draws_live = True
            self.set_timer(FRAME_SECONDS, self._draw_live)

    def _draw_live(self) -> None:
        now = time.monotonic()
        if now - self._key_at < TYPING_SECONDS and now - self._drawn_at < LATE_SECONDS:
            # A key is painted first.
            self.set_timer(TYPING_SECONDS, self._draw_live)
            return
        self._draws_live, self._drawn_at = False, now
        self._feed.draw_live(self.state.turn.id if self.state and self.state.turn else None)

    def _load(self) -> _Loaded:
        """In a thread."""
        return _Loaded(self.app.backend.conversation(self.session), self._feed.load(self.app.backend))

    def _show(self, loaded: _Loaded) -> None:
        state, following = loaded.state, self.history.follows
        new = self._feed.show(loaded.entries)
        if self._feed.has_undrawn:
            self._draw_soon()
        self._unseen = 0 if following else self._unseen + new
        if loaded.entries.page.has_later and not self._feed.has_later:
            self.data_changed()
        self.state, self._problem = state, ""
        if state.is_running or (state.turn is not None and state.turn.id != self._turn_before):
            self._feed.sent = None
        self.query_one(TodoPanel).show(state.todos, state.host)
        self._show_approvals(state)
        self._show_emptiness()
        self.composer.show_host(state.host)
        self.composer.running = self.is_busy
        self.composer.go_on = GoOn.NOTHING if self.is_busy else state.go_on
        if self.composer.queue.messages != state.queued:
            self.composer.refresh_queue()
        self._show_status()
        self.app.conversation_changed(state)

    def _fail(self, message: str) -> None:
        self._problem = message
        self._feed.fail(message)
        self._show_status()

    async def on_transcript_view_needed(self, event: TranscriptView.Needed) -> None:
        event.stop()
        if not event.older:
            if self._feed.has_later:
                self._load_newer()
            if self._unseen:
                self._unseen = 0
                self._show_status()
        elif not self._loading_older:
            self._loading_older = True
            self._load_older()

    @work(group="older")
    async def _load_older(self) -> None:
        try:
            page = await self.app.in_thread(self._feed.load_older, self.app.backend)
            if page is not None:
                self._feed.show_older(page)
        finally:
            self._loading_older = False

    @work(exclusive=True, group="newer")
    async def _load_newer(self) -> None:
        self._feed.show_newer(await self.app.in_thread(self._feed.load_newer, self.app.backend))

    @property
    def is_busy(self) -> bool:
        """Whether a turn works or is about to: further messages are queued."""
        return self._starts or self._feed.sent is not None or (self.state is not None and self.state.is_running)

    def show_sent(self, text: str) -> None:
        """Show a message whose turn has not begun."""
        self._turn_before = self.state.turn.id if self.state is not None and self.state.turn is not None else None
        self._feed.show_sent(text)
        self._show_busy()

    def begin_start(self) -> None:
        """A turn is about to begin without a new message."""
        self._starts = True
        self._show_busy()

    def end_start(self) -> None:
        """The turn has begun, or none did."""
        self._starts = False
        self._show_busy()
        self.data_changed()

    def not_sent(self) -> None:
        """No turn began with the message: it is in the queue, or goes back into the prompt."""
        self._feed.drop_sent()
        self._show_busy()
        self.data_changed()

    def take_back(self, text: str) -> None:
        """The message was not sent: it goes back into the prompt, before what the person is writing."""
        if self._is_whole:
            self.composer.set_text("\n".join(filter(None, [text, self.composer.text])))

    @property
    def _is_whole(self) -> bool:
        """Whether the parts of the screen exist: it may not be mounted yet, or be removed."""
        return self.is_running and bool(self.query(Composer)) and bool(self.query(StatusLine))

    def _show_busy(self) -> None:
        if self._is_whole:
            self._show_emptiness()
            self.composer.running = self.is_busy
            self._show_status()

    def _show_emptiness(self) -> None:
        """Say what to do as long as nothing was said."""
        is_empty = not self.history.entries
        if is_empty and not self.has_class("-empty"):
            backend = self.app.backend
            self.query_one("#empty", Static).update(empty_lines(backend.services.workspace.name, backend.model))
        self.set_class(is_empty, "-empty")

    # --- parts --------------------------------------------------------------------------------------------------

    def _show_approvals(self, state: ConversationState) -> None:
        panel = self.query_one(ApprovalPanel)
        was_shown = panel.approval is not None
        panel.show(state.approvals, self.app.backend.now())
        if panel.approval is None and was_shown:
            self.action_focus_prompt()
        elif panel.approval is not None and not was_shown:
            self._offers_approval = True
        self._offer_approval()
        self._arrange()

    def _offer_approval(self) -> None:
        """Focus a new question, unless the person is writing."""
        is_writing = time.monotonic() - self._key_at < QUIET_SECONDS or self.composer.text
        if self._offers_approval and not is_writing and self.composer.prompt.has_focus:
            self._offers_approval = False
            self.query_one(ApprovalPanel).focus()

    def _arrange(self) -> None:
        """Give the room of the list to a question where there is not enough for both."""
        asks = self.query_one(ApprovalPanel).approval is not None
        self.set_class(self.size.width >= WIDE, "-wide")
        edits = self.query_one(TodoPanel).has_focus_within
        self.set_class(asks and not edits and self.size.height < TALL and self.size.width < WIDE, "-crowded")

    def _approval_room(self) -> int:
        """The rows that prompt, status line and a little of the history leave for a question."""
        below = self.composer.outer_size.height + self.query_one(StatusLine).outer_size.height
        rows = self.size.height
        return rows - below - (MIN_HISTORY if rows >= ROOMY else 1)

    def on__dock_resized(self, event: _Dock.Resized) -> None:
        event.stop()
        self.query_one(ApprovalPanel).fit()

    def on_status_line_resized(self, event: StatusLine.Resized) -> None:
        event.stop()
        self.query_one(ApprovalPanel).fit()

    def _type(self, text: str) -> None:
        """Letters that were typed while a question had the focus, and are no answer, belong into the prompt."""
        self._key_at = time.monotonic()
        self.set_focus(self.composer.prompt)
        self.composer.prompt.insert_text(text)

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    def _show_status(self) -> None:
        state, values = self.state, StatusValues(problem=self._problem)
        if state is not None:
            values = status_values(
                state,
                self.app.backend.options.mode,
                self.app.backend.now(),
                starts=self._starts or self._feed.sent is not None,
                unseen=self._unseen,
                problem=self._problem,
            )
        self.query_one(StatusLine).show(values)
        if values.is_moving:
            self._ticker.resume()
        else:
            self._ticker.pause()

    def _tick(self) -> None:
        self._show_status()
        self.query_one(StatusLine).tick(animated=not self.app.reduced_motion)
        self.history.tick()

    def _show_ages(self) -> None:
        self._offer_approval()
        self.query_one(ApprovalPanel).show_age(self.app.backend.now())

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(is_too_small(event.size), "-tiny")
        self._arrange()
        self.call_after_refresh(self.query_one(ApprovalPanel).fit)

    # --- what the person does --------------------------------------------------------------------------------------

    def on_text_area_changed(self, _: TextArea.Changed) -> None:
        self._key_at = time.monotonic()

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        self.history.follow()
        self.app.submit(self.session, event.text)

    def on_composer_queued(self, event: Composer.Queued) -> None:
        event.stop()
        # The turn may have ended meanwhile.
        self.app.submit(self.session, event.text)

    def on_composer_go_on_requested(self, event: Composer.GoOnRequested) -> None:
        event.stop()
        self.app.turns.go_on(self.session)

    def on_composer_slash_entered(self, event: Composer.SlashEntered) -> None:
        event.stop()
        self.app.run_slash(self.session, event.line)

    def on_composer_interrupted(self, event: Composer.Interrupted) -> None:
        event.stop()
        self.app.interrupt(self.session)

    def on_composer_back_requested(self, event: Composer.BackRequested) -> None:
        event.stop()
        self.app.action_home()

    def on_composer_keys_requested(self, event: Composer.KeysRequested) -> None:
        event.stop()
        self.app.action_show_keys()

    def on_composer_rewind_requested(self, event: Composer.RewindRequested) -> None:
        """Choose an earlier message to write it anew. The conversation after it stays."""
        event.stop()
        said = [entry for entry in self.history.entries if isinstance(entry, SaidEntry)][-MAX_REWIND:]
        choices = [(str(number), line(entry.text, 200)) for number, entry in enumerate(reversed(said), start=1)]

        def chosen(number: str | None) -> None:
            if number is not None:
                self.composer.set_text(said[-int(number)].text)
                self.composer.focus_prompt()

        if choices:
            self.app.push_screen(
                ChoiceDialog("Copy an earlier message; what followed it stays", choices),
                chosen,
            )

    def on_todo_panel_changed(self, event: TodoPanel.Changed) -> None:
        event.stop()
        self.app.change_todo(self.session, event.change)

    def on_todo_panel_unavailable(self, event: TodoPanel.Unavailable) -> None:
        event.stop()
        self.app.say(event.why, "warning")

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        self.app.answer_approval(event.panel, event.approval, event.answer, event.reason)

    def on_approval_panel_unavailable(self, event: ApprovalPanel.Unavailable) -> None:
        event.stop()
        self.app.say(event.why, "warning")

    def action_toggle_todos(self) -> None:
        if self.has_class("-crowded"):
            self.app.say("There is no room for the list beside the question. Ctrl+L changes the list.", "information")
            return
        had_focus = self.query_one(TodoPanel).has_focus_within
        self.toggle_class("-no-list")
        if had_focus:
            self.action_focus_prompt()

    def action_toggle_cards(self) -> None:
        self.history.toggle_all()

    def action_focus_todos(self) -> None:
        self.remove_class("-no-list", "-crowded")
        self.query_one(TodoPanel).focus()

    def action_focus_approvals(self) -> None:
        panel = self.query_one(ApprovalPanel)
        if panel.approval is None:
            self.app.say("No call waits for approval.", "information")
        else:
            panel.focus()

    def action_focus_history(self) -> None:
        self.history.focus()
        self.history.select(-1)

    def action_focus_prompt(self) -> None:
        self.composer.focus_prompt()
        self._arrange()

    def action_home(self) -> None:
        self.app.action_home()

    def action_page_up(self) -> None:
        self._page(-1)

    def action_page_down(self) -> None:
        self._page(1)

    def on_prompt_text_paged(self, event: PromptText.Paged) -> None:
        event.stop()
        self._page(event.step)

    def _page(self, step: int) -> None:
        self.history.scroll_relative(y=step * max(self.history.size.height - 2, 1), animate=False)

    def action_change_mode(self) -> None:
        self.app.change_mode()
        self._show_status()
