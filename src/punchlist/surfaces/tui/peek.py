"""A look at one row of Home without opening it: answer a request, or see a session's list and last entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from punchlist.surfaces.tui.approval_panel import ApprovalPanel
from punchlist.surfaces.tui.display_text import assemble, hang, line
from punchlist.surfaces.tui.entries import Entry
from punchlist.surfaces.tui.entry_lines import summary_line
from punchlist.surfaces.tui.markdown_lines import text_lines
from punchlist.surfaces.tui.screen_state import HomeRow, HomeState
from punchlist.surfaces.tui.todo_panel import TodoPanel

if TYPE_CHECKING:
    from punchlist.surfaces.tui.app import PunchlistApp
    from punchlist.views.todos import TodoList

PREVIEW = 8
NARROW_SHARE = 0.75
"""Of the height, if it is below the rows; as in `app.tcss`."""


class Peek(Vertical):
    app: PunchlistApp
    DEFAULT_CSS = """
    Peek { display: none; height: auto; max-height: 60%; }
    Peek.-shown { display: block; }
    Peek > #peek-text { height: auto; max-height: 14; padding: 0 1; border: round $border-blurred; }
    Peek > Input { display: none; border: round $needs-you; height: 3; }
    Peek > TodoPanel { display: none; max-height: 12; }
    Peek > .-shown { display: block; }
    """

    class Answered(Message):
        """The answer to a request other than an approval."""

        def __init__(self, row: HomeRow, text: str) -> None:
            super().__init__()
            self.row = row
            self.text = text

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._row: HomeRow | None = None

    def compose(self) -> ComposeResult:
        approval = ApprovalPanel(id="peek-approval")
        approval.room = self._room
        yield approval
        yield Static(id="peek-text", markup=False)
        yield TodoPanel(id="peek-todos")
        yield Input(placeholder="Your answer", compact=False)

    def _room(self) -> int:
        body = self.screen.query_one("#home-body").size.height
        return int(body * NARROW_SHARE) if self.screen.has_class("-narrow") else body

    def update(self, row: HomeRow | None, state: HomeState) -> None:
        if not self.has_class("-shown"):
            return
        changed = row is None or self._row is None or row.id != self._row.id
        self._row = row
        approval = state.approvals.get(row.request_id or "") if row is not None else None
        now = self.app.backend.now()
        self.query_one(ApprovalPanel).show([approval] if approval is not None else [], now)
        asks = row is not None and approval is None and row.group == "needs_you"
        field = self.query_one(Input)
        field.set_class(asks, "-shown")
        if changed:
            field.value = ""
        self.query_one("#peek-text").display = approval is None and row is not None
        if row is None or approval is not None:
            self.query_one(TodoPanel).remove_class("-shown")
        elif asks:
            self._show_question(row)
        elif row.session is not None:
            self._load(row.session)

    def _show_question(self, row: HomeRow) -> None:
        width = max(self.size.width - 4, 20)
        lines = text_lines(row.text or row.title, width)
        hint = "your answer" if "answer" in row.answers else f"one of: {', '.join(row.answers)}"
        self.query_one(Input).placeholder = hint
        answers = "" if "answer" in row.answers else hint
        lines += hang(assemble((line(answers), "$quiet")), width)
        self.query_one(TodoPanel).remove_class("-shown")
        self.query_one("#peek-text", Static).update(Content("\n").join(lines))

    @work(exclusive=True, group="peek")
    async def _load(self, session: str) -> None:
        todos, entries = await self.app.in_thread(_read, self.app.backend, session)
        if not self.query("#peek-text") or self._row is None or self._row.session != session:
            return
        width = max(self.size.width - 4, 20)
        shown = [summary_line(entry, width) for entry in entries[-PREVIEW:]]
        self.query_one("#peek-text", Static).update(Content("\n").join(shown))
        panel = self.query_one(TodoPanel)
        panel.set_class(bool(todos.items), "-shown")
        panel.show(todos)

    def fit(self) -> None:
        """The screen has another size."""
        self.query_one(ApprovalPanel).fit()

    def focus_answer(self) -> None:
        """Focus what answers the row."""

        def focus() -> None:
            if self.query_one(ApprovalPanel).has_class("-shown"):
                self.query_one(ApprovalPanel).focus()
            elif self.query_one(Input).has_class("-shown"):
                self.query_one(Input).focus()

        self.call_after_refresh(focus)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self._row is not None and event.input.parent is self and event.value.strip():
            event.stop()
            self.app.answer_request(self._row, event.value.strip())

    def on_todo_panel_unavailable(self, event: TodoPanel.Unavailable) -> None:
        event.stop()
        self.app.say(event.why, "warning")

    def on_todo_panel_changed(self, event: TodoPanel.Changed) -> None:
        event.stop()
        if self._row is not None and self._row.session is not None:
            self.app.change_todo(self._row.session, event.change)


def _read(backend: object, session: str) -> tuple[TodoList, Sequence[Entry]]:
    from punchlist.surfaces.tui.backend import Backend

    assert isinstance(backend, Backend)
    return backend.todos(session), backend.page(session, limit=PREVIEW * 2).entries
