"""One conversation: its history, its list, its approvals, its queue and the prompt."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from punchlist.surfaces.tui.approval_panel import ApprovalPanel
from punchlist.surfaces.tui.backend import FIRST_PAGE
from punchlist.surfaces.tui.display_text import assemble, cut, line
from punchlist.surfaces.tui.entries import CallEntry
from punchlist.surfaces.tui.prompt_area import PromptArea
from punchlist.surfaces.tui.refresh import Refresh
from punchlist.surfaces.tui.screen_state import ConversationState, EntryPage
from punchlist.surfaces.tui.status_line import StatusLine, StatusValues
from punchlist.surfaces.tui.todo_panel import TodoPanel
from punchlist.surfaces.tui.transcript_view import TranscriptView

if TYPE_CHECKING:
    from punchlist.surfaces.tui.app import PunchlistApp

WIDE = 110
"""Columns from which the list is beside the history."""
QUIET_SECONDS = 1.0
"""After a key, the focus does not move on its own for this long."""
TICK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class _Loaded:
    state: ConversationState
    page: EntryPage
    calls: list[CallEntry]
    is_first: bool


class ConversationScreen(Screen[None]):
    app: PunchlistApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "toggle_todos", "List", id="toggle_todos", priority=True),
        Binding("ctrl+o", "toggle_cards", "Open all cards", id="toggle_cards", priority=True),
        Binding("ctrl+y", "focus_approvals", "Approvals", id="focus_approvals", priority=True),
        Binding("ctrl+l", "focus_todos", "Edit list", id="focus_todos", priority=True),
        Binding("shift+tab", "change_mode", "Mode", id="change_mode", priority=True),
        Binding("pageup", "page(-1)", "Scroll", id="page_up", show=False),
        Binding("pagedown", "page(1)", "Scroll", id="page_down", show=False),
        Binding("ctrl+up", "focus_history", "History", id="focus_history", show=False),
        Binding("escape", "focus_prompt", "Prompt", id="focus_prompt", show=False),
        Binding("ctrl+b", "app.home", "Home", id="home"),
        Binding("question_mark", "app.keys", "Keys", id="keys", show=False),
    ]

    def __init__(self, session: str) -> None:
        super().__init__()
        self.session = session
        self.state: ConversationState | None = None
        self._refresh: Refresh[_Loaded] | None = None
        self._last = 0
        self._first = 0
        self._has_earlier = False
        self._is_loaded = False
        self._loading_older = False
        self._key_at = 0.0
        self._working_since = 0.0
        self._unseen = 0

    def compose(self) -> ComposeResult:
        with Container(id="conversation"):
            yield TranscriptView(id="history")
            yield TodoPanel(id="todos")
        with Vertical(id="dock"):
            yield ApprovalPanel(id="approvals")
            yield Static(id="queue", markup=False)
            yield PromptArea(id="composer")
            yield StatusLine(id="status")

    def on_mount(self) -> None:
        self._refresh = Refresh(self, self._load, self._show, self._fail)
        self._refresh.request()
        self.set_interval(TICK_SECONDS, self._tick)
        self.query_one("#composer").focus()

    # --- loading ------------------------------------------------------------------------------------------------

    def data_changed(self) -> None:
        if self._refresh is not None:
            self._refresh.request()

    def on_screen_resume(self) -> None:
        self.data_changed()

    def _load(self) -> _Loaded:
        """In a thread."""
        backend, is_first = self.app.backend, not self._is_loaded
        if is_first:
            page = backend.page(self.session, limit=FIRST_PAGE)
        else:
            page = backend.page(self.session, after=self._last)
        open_calls = [
            entry
            for entry in [*self.history.entries, *page.entries]
            if isinstance(entry, CallEntry) and not entry.has_ended
        ]
        return _Loaded(backend.conversation(self.session), page, backend.calls(open_calls), is_first)

    def _show(self, loaded: _Loaded) -> None:
        state, page = loaded.state, loaded.page
        history, following = self.history, self.history.follows
        if loaded.is_first:
            self._is_loaded, self._first, self._has_earlier = True, page.first, page.has_earlier
            history.replace(page.entries)
        elif page.entries:
            history.extend(page.entries)
            self._unseen = 0 if following else self._unseen + len(page.entries)
        history.extend(loaded.calls)
        if page.entries:
            self._last = page.last
        if page.has_later:
            self.data_changed()
        if state.is_running and not (self.state and self.state.is_running):
            self._working_since = time.monotonic()
        self.state = state
        self.query_one(TodoPanel).show(state.todos)
        self._show_approvals(state)
        self._show_queue(state)
        self._show_status()
        self.app.conversation_changed(state)

    def _fail(self, message: str) -> None:
        self.app.say(message, "error")

    @property
    def history(self) -> TranscriptView:
        return self.query_one(TranscriptView)

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
        typing = time.monotonic() - self._key_at < QUIET_SECONDS or self._draft
        if panel.approval is not None and not was_shown and not typing:
            panel.focus()
        elif panel.approval is None and was_shown:
            self.action_focus_prompt()

    @property
    def _draft(self) -> str:
        return str(getattr(self.query_one("#composer"), "text", ""))

    def _show_queue(self, state: ConversationState) -> None:
        widget = self.query_one("#queue", Static)
        widget.display = bool(state.queued)
        width = max(self.size.width - 4, 20)
        rows = [
            cut(assemble((f"⋯ {number} ", "$working"), line(message.content, 300)), width)
            for number, message in enumerate(state.queued, start=1)
        ]
        widget.update(Content("\n").join(rows))

    def _show_status(self) -> None:
        state = self.state
        if state is None:
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
            )
        )

    def _tick(self) -> None:
        if self.state is not None and self.state.is_running:
            self._show_status()
            self.query_one(StatusLine).tick(animated=not self.app.reduced_motion)
            self.history.tick()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-wide")

    # --- what the person does --------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        del event
        self._key_at = time.monotonic()

    def on_prompt_area_submitted(self, event: PromptArea.Submitted) -> None:
        event.stop()
        self.app.submit(self.session, event.text)

    def on_prompt_area_slash_entered(self, event: PromptArea.SlashEntered) -> None:
        event.stop()
        self.app.run_slash(self.session, event.line)

    def on_prompt_area_interrupted(self, event: PromptArea.Interrupted) -> None:
        event.stop()
        self.app.interrupt(self.session)

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
        self.history.action_select(-1)

    def action_focus_prompt(self) -> None:
        self.query_one("#composer").focus()

    def action_page(self, step: int) -> None:
        self.history.scroll_relative(y=step * max(self.history.size.height - 2, 1), animate=False)

    def action_change_mode(self) -> None:
        self.app.change_mode()
        self._show_status()
