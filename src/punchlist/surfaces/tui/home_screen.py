"""Home: everything that needs you, works or is done, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from punchlist.surfaces.tui.data_screen import DataScreen
from punchlist.surfaces.tui.display_text import assemble
from punchlist.surfaces.tui.home_lines import group_line, row_lines
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.refresh import Refresh
from punchlist.surfaces.tui.screen_state import GROUPS, HomeRow, HomeState
from punchlist.surfaces.tui.too_small import TooSmall, is_too_small

if TYPE_CHECKING:
    from punchlist.surfaces.tui.approval_panel import ApprovalPanel
    from punchlist.surfaces.tui.peek import Peek

NARROW = 100
"""Columns below which Peek is below the rows."""
LIVENESS_SECONDS = 5.0
WELCOME = """\
Nothing here yet.

n  give an agent a goal
/  search conversations and items
?  all keys

Agents that you run yourself (Claude Code, Codex, Gemini CLI, opencode)
appear here after `punchlist install`."""


class HomeRows(OptionList):
    # The footer shows the key of the focused widget, and the one of OptionList is hidden.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Open", id="home.open")]

    def unavailable_reason(self, action: str) -> str | None:
        assert isinstance(self.screen, HomeScreen)
        return self.screen.unavailable_reason(action)


class HomeScreen(DataScreen):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.HOME)]

    def __init__(self) -> None:
        super().__init__()
        self._state: HomeState | None = None
        self._refresh: Refresh[HomeState] | None = None
        self._error = ""
        self._peek: Peek | None = None
        """Made at its first use: the first frame does not need it."""
        self._left: str | None = None
        """The session of the conversation that was just left: its row is selected with the next load."""

    def compose(self) -> ComposeResult:
        yield TooSmall()
        yield Static(assemble(("punchlist", "bold $working"), ("  loading…", "$quiet")), id="home-title", markup=False)
        with Container(id="home-body"):
            yield HomeRows(id="rows", markup=False)
        yield Static(WELCOME, id="welcome", markup=False)
        yield Footer(show_command_palette=False, compact=True)

    def start(self) -> None:
        self._refresh = Refresh(self, self.app.backend.home, self._show, self._fail)
        self._refresh.request()
        self.query_one("#rows").focus()
        # Neither the start nor the end of a process is an event.
        self.set_interval(LIVENESS_SECONDS, self.data_changed)

    def returned_from(self, session: str) -> None:
        self._left = session

    def data_changed(self) -> None:
        if self._refresh is not None:
            self._refresh.request()

    # --- drawing ------------------------------------------------------------------------------------------------

    def _show(self, state: HomeState) -> None:
        self._error = ""
        self._state = state
        self.app.show_waiting(state.waiting)
        self.redraw()
        self._left = None
        self._update_peek()

    def _fail(self, message: str) -> None:
        self._error = message
        self.redraw()

    @property
    def row(self) -> HomeRow | None:
        """The highlighted row."""
        rows = self.query_one("#rows", OptionList)
        if self._state is None or rows.highlighted is None or rows.highlighted >= rows.option_count:
            return None
        id = rows.get_option_at_index(rows.highlighted).id
        return next((row for row in self._state.rows if row.id == id), None)

    def redraw(self) -> None:
        state = self._state
        title = self.query_one("#home-title", Static)
        if self._error:
            title.update(assemble(("✗ ", "$failed"), self._error))
        if state is None:
            return
        if not self._error:
            title.update(self._title(state))
        self.set_class(not state.rows, "-empty")
        rows = self.query_one("#rows", OptionList)
        current = self.row
        width = max(rows.scrollable_content_region.width - 1, 20)
        options = self._options(state, width)
        rows.clear_options()
        rows.add_options(options)
        ids = [option.id for option in options]
        left = next((row.id for row in state.rows if row.session == self._left), None)
        if self._left is not None and left in ids:
            rows.highlighted = ids.index(left)
        elif current is not None and current.id in ids:
            rows.highlighted = ids.index(current.id)
        else:
            rows.highlighted = next((place for place, option in enumerate(options) if not option.disabled), None)

    def _options(self, state: HomeState, width: int) -> list[Option]:
        now = self.app.backend.now()
        options: list[Option] = []
        for group in GROUPS:
            found = state.group(group)
            if options:
                options.append(Option("", disabled=True))
            options.append(Option(group_line(group, len(found), width), disabled=True))
            options += [Option(Content("\n").join(row_lines(row, now, width)), id=row.id) for row in found]
        return options

    def _title(self, state: HomeState) -> Content:
        folder = self.app.backend.services.workspace.name
        waiting = (f"◆ {state.waiting} waiting", "bold $needs-you") if state.waiting else ("nothing waits", "$quiet")
        count = len(state.missions)
        missions = f"mission {state.missions[0]}" if count == 1 else f"{count} missions" if count else ""
        hint = f"  · {missions}: ^p /mission" if missions else ""
        return assemble(("punchlist", "bold $working"), (f"  {folder}  ", "$quiet"), waiting, (hint, "$quiet"))

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < NARROW, "-narrow")
        self.set_class(is_too_small(event.size), "-tiny")
        self.call_after_refresh(self.redraw)
        if self._peek is not None and self._peek.is_mounted:
            self.call_after_refresh(self._peek.fit)

    # --- what the person does --------------------------------------------------------------------------------------

    def on_option_list_option_highlighted(self, _: OptionList.OptionHighlighted) -> None:
        self._update_peek()

    async def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_list.id == "rows":
            await self.action_open()

    def unavailable_reason(self, action: str) -> str | None:
        return "no row is selected" if action in ("open", "peek", "select") and self.row is None else None

    async def action_open(self) -> None:
        row = self.row
        if row is not None and row.session is not None:
            self.app.open_conversation(row.session)
        elif row is not None:
            await self.action_peek()

    async def action_peek(self) -> None:
        if self._state is None or self.row is None:
            return
        if self._peek is None:
            self._peek = self.app.make_peek()
            await self.query_one("#home-body").mount(self._peek)
        peek = self._peek
        if peek.has_class("-shown"):
            self._close_peek(peek)
        else:
            peek.add_class("-shown")
            peek.update(self.row, self._state)
            peek.focus_answer()
            self.call_after_refresh(self.redraw)

    def _close_peek(self, peek: Peek) -> None:
        peek.remove_class("-shown")
        self.query_one("#rows").focus()
        self.call_after_refresh(self.redraw)

    def _update_peek(self) -> None:
        if self._state is not None and self._peek is not None and self._peek.is_mounted:
            self._peek.update(self.row, self._state)

    def action_new(self) -> None:
        self.app.open_conversation(None)

    def action_search(self) -> None:
        self.app.run_or_write("/search", needs_argument=False)

    def action_leave(self) -> None:
        self.app.action_leave()

    def on_key(self, event: events.Key) -> None:
        peek = self._peek
        if event.key == "escape" and peek is not None and peek.has_class("-shown"):
            event.stop()
            self._close_peek(peek)

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        self.app.answer_approval(event.panel, event.approval, event.answer, event.reason)

    def on_approval_panel_unavailable(self, event: ApprovalPanel.Unavailable) -> None:
        self.app.say(event.why, "warning")
