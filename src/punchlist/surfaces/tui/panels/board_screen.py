"""A mission as a board: one column per status, cards moved by key. Impossible moves say why (M15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from punchlist.missions.model import MissionScope, MissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.runs.lifecycle import RunStatus
from punchlist.surfaces.tui.dialogs import LineDialog
from punchlist.surfaces.tui.display_text import assemble
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.panels.board_lines import card, header
from punchlist.surfaces.tui.panels.board_moves import COLUMNS, TITLES, action_problem, column_of, plan_move
from punchlist.surfaces.tui.panels.metrics_screen import MetricsScreen
from punchlist.surfaces.tui.panels.panel_screen import PanelScreen
from punchlist.surfaces.tui.panels.todo_screen import TodoScreen
from punchlist.views.board import BoardFilter, MissionBoard, read_board
from punchlist.views.health import has_worker

NARROW: Final = 90
"""Below this width only the column with the focus is shown."""
REASON: Final = "moved on the board"
NO_CARD: Final = "There is no card here. ← and → go to another column."
NO_WORKER: Final = (
    "◆ No worker runs, so queued runs wait. Start one in another terminal: punchlist worker (or punchlist serve)"
)


class BoardColumn(OptionList):
    def __init__(self, status: TodoStatus) -> None:
        super().__init__(markup=False, id=f"column-{status.value}")
        self.status = status
        self.todos: Sequence[MissionTodo] = ()

    def fill(self, board: MissionBoard) -> None:
        chosen = self.chosen
        self.todos = [todo for todo in board.todos.items if column_of(todo.status) is self.status]
        self.set_options([Option(card(board, todo)) for todo in self.todos])
        count = sum(number for status, number in board.counts.items() if column_of(status) is self.status)
        self.border_title = f"{TITLES[self.status]} {count}"
        places = [place for place, todo in enumerate(self.todos) if chosen is not None and todo.id == chosen.id]
        if self.todos:
            self.highlighted = places[0] if places else 0

    @property
    def chosen(self) -> MissionTodo | None:
        place = self.highlighted
        return self.todos[place] if place is not None and place < len(self.todos) else None


class BoardScreen(PanelScreen[MissionBoard]):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.BOARD)]
    DEFAULT_CSS = """
    BoardScreen > Vertical { background: $background; }
    BoardScreen #board-header { height: 1; padding: 0 1; }
    BoardScreen BoardColumn { width: 1fr; height: 1fr; border: round $border-blurred; background: $background; }
    BoardScreen BoardColumn { border-title-color: $quiet; }
    BoardScreen BoardColumn:focus { border: round $accent; border-title-color: $accent; }
    BoardScreen #board-notice { height: auto; padding: 0 1; display: none; }
    BoardScreen #board-tabs { height: 1; padding: 0 1; display: none; }
    BoardScreen.-narrow #board-tabs { display: block; }
    BoardScreen.-narrow BoardColumn { display: none; }
    BoardScreen.-narrow BoardColumn.-current { display: block; }
    """

    def __init__(self, slug: str) -> None:
        super().__init__()
        self._slug = slug
        self._filter = BoardFilter()
        self._follow: str | None = None
        """The todo that was moved: the focus goes with it."""
        self._has_worker = True
        self._columns = [BoardColumn(status) for status in COLUMNS]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(id="board-header", markup=False)
            yield Static(id="board-notice", markup=False)
            yield Static(id="board-tabs", markup=False)
            with Horizontal():
                yield from self._columns
            yield Footer(compact=True)

    def on_mount(self) -> None:
        super().on_mount()
        self._focus(self._columns[1])

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < NARROW, "-narrow")

    def load(self) -> MissionBoard:
        self._has_worker = has_worker(self.backend.services.store)
        return read_board(self.backend.services.store, self._slug, self._filter)

    def show(self, data: MissionBoard) -> None:
        text = header(data)
        if self._filter.search:
            text = Content("").join([text, Content.styled(f"  filter: {self._filter.search}", "$needs-you")])
        self.query_one("#board-header", Static).update(text)
        queued = any(run.status is RunStatus.QUEUED for run in data.runs.values())
        notice = self.query_one("#board-notice", Static)
        notice.display = queued and not self._has_worker
        notice.update(Content.styled(NO_WORKER, "$needs-you"))
        for column in self._columns:
            column.fill(data)
        self._follow_moved()
        self._show_tabs()

    def _show_tabs(self) -> None:
        """The columns that have no room, in one line."""
        parts = [
            (f"{column.border_title}  ", "bold $accent" if column.has_class("-current") else "$quiet")
            for column in self._columns
        ]
        self.query_one("#board-tabs", Static).update(assemble(*parts))

    def _follow_moved(self) -> None:
        for column in self._columns:
            places = [place for place, todo in enumerate(column.todos) if todo.id == self._follow]
            if places and column is not self._current:
                column.highlighted = places[0]
                self._focus(column)
        self._follow = None

    # --- moving around --------------------------------------------------------------------------------------------

    @property
    def _current(self) -> BoardColumn:
        return next((column for column in self._columns if column.has_focus), self._columns[1])

    def _focus(self, column: BoardColumn) -> None:
        for each in self._columns:
            each.set_class(each is column, "-current")
        column.focus()
        self._show_tabs()

    def action_left(self) -> None:
        self._focus(self._columns[max(self._columns.index(self._current) - 1, 0)])

    def action_right(self) -> None:
        self._focus(self._columns[min(self._columns.index(self._current) + 1, len(self._columns) - 1)])

    def action_up(self) -> None:
        self._current.action_cursor_up()

    def action_down(self) -> None:
        self._current.action_cursor_down()

    def action_open(self) -> None:
        if (todo := self._chosen()) is not None:
            self.app.push_screen(TodoScreen(todo.id))

    def _chosen(self) -> MissionTodo | None:
        """The chosen card; without one, say so."""
        if (todo := self._current.chosen) is None:
            self.say(NO_CARD, failed=True)
        return todo

    def on_option_list_option_selected(self) -> None:
        self.action_open()

    def action_metrics(self) -> None:
        self.app.push_screen(MetricsScreen(self._slug))

    def action_filter(self) -> None:
        def chosen(words: str | None) -> None:
            self._filter = BoardFilter(search=words or "")
            self.reload()

        self.app.push_screen(LineDialog("Show todos that contain", self._filter.search), chosen)

    # --- changing todos -------------------------------------------------------------------------------------------

    def action_move_left(self) -> None:
        self._move(-1)

    def action_move_right(self) -> None:
        self._move(1)

    def _move(self, step: int) -> None:
        if (todo := self._chosen()) is None:
            return
        action = plan_move(todo.status, step)
        if isinstance(action, TodoAction):
            self._change(todo, action)
        else:
            self.say(action, failed=True)

    def action_start(self) -> None:
        self._try(TodoAction.START)

    def action_complete(self) -> None:
        self._try(TodoAction.COMPLETE)

    def action_cancel(self) -> None:
        self._try(TodoAction.CANCEL)

    def _try(self, action: TodoAction) -> None:
        if (todo := self._chosen()) is None:
            return
        if problem := action_problem(todo.status, action):
            self.say(problem, failed=True)
        else:
            self._change(todo, action)

    def _change(self, todo: MissionTodo, action: TodoAction) -> None:
        if action is TodoAction.COMPLETE:
            self.app.push_screen(
                LineDialog("Outcome", "", "what was achieved"), lambda text: self._complete(todo, text)
            )
        elif action is TodoAction.CANCEL:
            self.app.push_screen(LineDialog("Reason", "", "why it is cancelled"), lambda text: self._cancel(todo, text))
        else:
            self._update(todo, action, REASON)

    def _complete(self, todo: MissionTodo, outcome: str | None) -> None:
        if outcome is None:
            return
        services, scope = self.backend.services, self._scope
        self._follow = todo.id

        def work() -> None:
            if (checked := services.mission_todos.todo_needing_check(scope, self._slug, todo.id)) is not None:
                services.checks.run(scope, checked)
            services.mission_todos.complete(scope, self._slug, todo.id, outcome)

        self.act(work)

    def _cancel(self, todo: MissionTodo, reason: str | None) -> None:
        if reason is not None:
            self._update(todo, TodoAction.CANCEL, reason)

    def _update(self, todo: MissionTodo, action: TodoAction, reason: str) -> None:
        self._follow = todo.id
        todos, scope = self.backend.services.mission_todos, self._scope
        self.act(lambda: todos.update(scope, self._slug, todo.id, action, reason))

    @property
    def _scope(self) -> MissionScope:
        assert self.data is not None
        return MissionScope(self.data.mission.conversation_id, self.backend.person)
