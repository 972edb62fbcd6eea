"""One conversation: its history, its list, its approvals, its queue and the prompt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.widgets import TextArea

from punchlist.surfaces.tui.approval_panel import ApprovalPanel
from punchlist.surfaces.tui.backend import FIRST_PAGE
from punchlist.surfaces.tui.composer import Composer
from punchlist.surfaces.tui.data_screen import DataScreen
from punchlist.surfaces.tui.dialogs import ChoiceDialog
from punchlist.surfaces.tui.display_text import line
from punchlist.surfaces.tui.entries import CallEntry, Entry, NoteEntry, ReplyEntry, SaidEntry
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.live_buffer import LiveBuffer, live_id
from punchlist.surfaces.tui.refresh import Refresh
from punchlist.surfaces.tui.screen_state import ConversationState, EntryPage
from punchlist.surfaces.tui.status_line import StatusLine, StatusValues
from punchlist.surfaces.tui.todo_panel import TodoPanel
from punchlist.surfaces.tui.too_small import TooSmall, is_too_small
from punchlist.surfaces.tui.transcript_view import TranscriptView

if TYPE_CHECKING:
    from punchlist.views.live_text import LiveText

WIDE = 110
"""Columns from which the list is beside the history."""
TALL = 40
"""Rows from which the list and a question fit below each other."""
QUIET_SECONDS = 1.0
"""After a key, the focus does not move on its own for this long."""
TICK_SECONDS = 0.1
FRAME_SECONDS = 0.05
"""Between two drawings of streamed text."""
MAX_REWIND = 30


@dataclass(frozen=True, slots=True)
class _Loaded:
    state: ConversationState
    page: EntryPage
    calls: list[CallEntry]
    is_first: bool


class ConversationScreen(DataScreen):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.CONVERSATION)]

    def __init__(self, session: str) -> None:
        super().__init__()
        self.session = session
        self.history = TranscriptView(id="history")
        self.state: ConversationState | None = None
        self._open_calls: list[CallEntry] = []
        self._refresh: Refresh[_Loaded] | None = None
        self._last = 0
        self._first = 0
        self._has_earlier = False
        self._is_loaded = False
        self._loading_older = False
        self._key_at = 0.0
        self._working_since = 0.0
        self._unseen = 0
        self._live = LiveBuffer()
        self._offers_approval = False
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield TooSmall()
        with Container(id="conversation"):
            yield self.history
            yield TodoPanel(id="todos")
        with Vertical(id="dock"):
            yield ApprovalPanel(id="approvals")
            yield self.app.make_composer(self.session)
            yield StatusLine(id="status")

    def start(self) -> None:
        self._refresh = Refresh(self, self._load, self._show, self._fail)
        self._refresh.request()
        self.set_interval(TICK_SECONDS, self._tick)
        self.set_interval(FRAME_SECONDS, self._flush_live)
        self.composer.focus_prompt()

    # --- loading ------------------------------------------------------------------------------------------------

    def data_changed(self) -> None:
        if self._refresh is not None:
            self._refresh.request()

    def add_live(self, pieces: Sequence[LiveText]) -> None:
        # Drawn with the next frame.
        for piece in pieces:
            if piece.conversation_id == self.session:
                self._live.add(piece)

    def _flush_live(self) -> None:
        history, live = self.history, self._live
        turn = self.state.turn.id if self.state and self.state.turn else None
        entries: list[Entry] = [*live.take_replies(turn)]
        for call_id, output in live.take_outputs().items():
            call = history.entry(call_id)
            if isinstance(call, CallEntry) and not call.has_ended:
                entries.append(replace(call, status="executing", output=output))
        live.taken()
        if entries:
            history.extend(entries)

    def _drop_stored_replies(self, entries: Sequence[Entry]) -> None:
        """Remove streamed text whose message is stored now."""
        texts = {entry.text for entry in entries if isinstance(entry, ReplyEntry)}
        for turn in self._live.streaming:
            if turn in self._live.ended or self._live.text(turn).strip() in texts:
                self._live.forget(turn)
                self.history.drop(live_id(turn))

    def _load(self) -> _Loaded:
        """In a thread."""
        backend, is_first = self.app.backend, not self._is_loaded
        if is_first:
            page = backend.page(self.session, limit=FIRST_PAGE)
        else:
            page = backend.page(self.session, after=self._last)
        calls = [*self._open_calls, *open_calls(page.entries)]
        return _Loaded(backend.conversation(self.session), page, backend.calls(calls), is_first)

    def _show(self, loaded: _Loaded) -> None:
        state, page = loaded.state, loaded.page
        history, following = self.history, self.history.follows
        if loaded.is_first:
            self._is_loaded, self._first, self._has_earlier = True, page.first, page.has_earlier
            history.replace(page.entries)
        elif page.entries:
            self._drop_stored_replies(page.entries)
            history.extend(page.entries)
            self._unseen = 0 if following else self._unseen + len(page.entries)
        history.extend(loaded.calls)
        self._open_calls = open_calls(loaded.calls)
        if page.entries:
            self._last = page.last
        if page.has_later:
            self.data_changed()
        if state.is_running and not (self.state and self.state.is_running):
            self._working_since = time.monotonic()
        self.state, self._problem = state, ""
        self.query_one(TodoPanel).show(state.todos)
        self._show_approvals(state)
        self.composer.running = state.is_running
        if self.composer.queue.messages != state.queued:
            self.composer.refresh_queue()
        self._show_status()
        self.app.conversation_changed(state)

    def _fail(self, message: str) -> None:
        self._problem = message
        if self.state is None:
            self.history.replace([NoteEntry("problem", "problem", f"This conversation cannot be read.\n{message}")])
            self.history.toggle("problem")
        self._show_status()

    async def on_transcript_view_needed(self, event: TranscriptView.Needed) -> None:
        event.stop()
        if not event.older:
            if self._unseen:
                self._unseen = 0
                self._show_status()
        elif self._has_earlier and not self._loading_older:
            self._loading_older = True
            self.run_worker(self._load_older(), group="older")

    async def _load_older(self) -> None:
        try:
            page = await self.app.in_thread(self.app.backend.page, self.session, before=self._first)
            self._has_earlier = page.has_earlier
            if page.entries:
                self._first = page.first
                self.history.prepend(page.entries)
        finally:
            self._loading_older = False

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
        self.set_class(asks and self.size.height < TALL and self.size.width < WIDE, "-crowded")

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    def _show_status(self) -> None:
        state = self.state
        if state is None:
            self.query_one(StatusLine).show(StatusValues(problem=self._problem))
            return
        self.query_one(StatusLine).show(
            StatusValues(
                state.figures,
                self.app.backend.options.mode,
                len(state.approvals),
                state.is_running,
                state.is_open,
                time.monotonic() - self._working_since if state.is_running else 0.0,
                len(state.queued),
                self._unseen,
                self._problem,
            )
        )

    def _tick(self) -> None:
        self._offer_approval()
        if self.state is not None and self.state.is_running:
            self._show_status()
            self.query_one(StatusLine).tick(animated=not self.app.reduced_motion)
            self.history.tick()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(is_too_small(event.size), "-tiny")
        self._arrange()

    # --- what the person does --------------------------------------------------------------------------------------

    def on_text_area_changed(self, _: TextArea.Changed) -> None:
        self._key_at = time.monotonic()

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        self.history.follow()
        self.app.submit(self.session, event.text)

    def on_composer_queued(self, event: Composer.Queued) -> None:
        event.stop()
        self.app.act(self.app.backend.queue, self.session, event.text)

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
        """Choose an earlier message, and write it anew."""
        event.stop()
        said = [entry for entry in self.history.entries if isinstance(entry, SaidEntry)][-MAX_REWIND:]
        choices = [(str(number), line(entry.text, 200)) for number, entry in enumerate(reversed(said), start=1)]

        def chosen(number: str | None) -> None:
            if number is not None:
                self.composer.set_text(said[-int(number)].text)
                self.composer.focus_prompt()

        if choices:
            self.app.push_screen(ChoiceDialog("Write an earlier message anew", choices), chosen)

    def on_todo_panel_changed(self, event: TodoPanel.Changed) -> None:
        event.stop()
        self.app.change_todo(self.session, event.change)

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        self.app.answer_approval(event.approval, event.answer, event.reason)

    def on_approval_panel_unavailable(self, event: ApprovalPanel.Unavailable) -> None:
        event.stop()
        self.app.say(event.why, "warning")

    def action_toggle_todos(self) -> None:
        panel = self.query_one(TodoPanel)
        panel.display = not panel.display
        if not panel.display:
            self.action_focus_prompt()

    def action_toggle_cards(self) -> None:
        self.history.toggle_all()

    def action_focus_todos(self) -> None:
        panel = self.query_one(TodoPanel)
        panel.display = True
        panel.focus()

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

    def action_home(self) -> None:
        self.app.action_home()

    def action_page_up(self) -> None:
        self._page(-1)

    def action_page_down(self) -> None:
        self._page(1)

    def _page(self, step: int) -> None:
        self.history.scroll_relative(y=step * max(self.history.size.height - 2, 1), animate=False)

    def action_change_mode(self) -> None:
        self.app.change_mode()
        self._show_status()


def open_calls(entries: Sequence[Entry]) -> list[CallEntry]:
    """The calls among the entries that have not ended."""
    return [entry for entry in entries if isinstance(entry, CallEntry) and not entry.has_ended]
