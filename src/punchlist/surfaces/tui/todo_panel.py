"""The docked list of a session: plan and checklist, editable while agents work (X9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.todo_lines import progress_line, todo_lines

if TYPE_CHECKING:
    from punchlist.views.todos import NumberedTodo, TodoList

ADD: Final = "add"
EDIT: Final = "edit"


@dataclass(frozen=True, slots=True)
class TodoEdit:
    """What the person wants to change."""

    action: str
    """`add`, `edit`, `move`, `start`, `complete`, `reopen`, `cancel`, `accept` or `undo`."""
    number: int = 0
    text: str = ""
    position: int = 0


class _Items(OptionList):
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KeyScope.LIST),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]

    def _act(self, action: str) -> None:
        panel = self.parent
        assert isinstance(panel, TodoPanel)
        panel.act(action)

    def action_add(self) -> None:
        self._act(ADD)

    def action_edit(self) -> None:
        self._act(EDIT)

    def action_complete(self) -> None:
        self._act("complete")

    def action_start(self) -> None:
        self._act("start")

    def action_cancel(self) -> None:
        self._act("cancel")

    def action_accept(self) -> None:
        self._act("accept")

    def action_up(self) -> None:
        self._act("up")

    def action_down(self) -> None:
        self._act("down")

    def action_undo(self) -> None:
        self._act("undo")


class TodoPanel(Vertical):
    DEFAULT_CSS = """
    TodoPanel { height: auto; border: round $border-blurred; padding: 0 1; background: $background; }
    TodoPanel:focus-within { border: round $border; }
    TodoPanel > Static { height: 1; }
    TodoPanel > OptionList {
        height: auto; max-height: 100%; border: none; padding: 0; background: $background; scrollbar-size-vertical: 1;
    }
    TodoPanel > OptionList:focus { border: none; background-tint: $foreground 0%; }
    TodoPanel > OptionList:blur > .option-list--option-highlighted { background: $background; }
    TodoPanel > Input { border: none; height: 1; padding: 0; background: $panel; display: none; }
    TodoPanel > Input.-shown { display: block; }
    """

    class Changed(Message):
        def __init__(self, change: TodoEdit) -> None:
            super().__init__()
            self.change = change

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._todos: TodoList | None = None
        self._editing: TodoEdit | None = None

    def compose(self) -> ComposeResult:
        yield Static(markup=False, id="progress")
        yield _Items(markup=False)
        yield Input(placeholder="What has to be done?", compact=True)

    @property
    def _items(self) -> _Items:
        return self.query_one(_Items)

    @property
    def _input(self) -> Input:
        return self.query_one(Input)

    def show(self, todos: TodoList) -> None:
        """Show these lists. The highlighted item stays highlighted."""
        if todos == self._todos:
            return
        self._todos = todos
        self._draw()

    def _draw(self) -> None:
        todos, items = self._todos, self._items
        if todos is None or not self.is_attached:
            return
        width = max(items.scrollable_content_region.width, 20) if items.size.width else max(self.size.width - 4, 20)
        self.query_one("#progress", Static).update(progress_line(todos, width))
        current = self.selected
        items.clear_options()
        items.add_options(
            Option(Content("\n").join(todo_lines(item, width)), id=str(item.number)) for item in todos.items
        )
        numbers = [item.number for item in todos.items]
        if current is not None and current.number in numbers and self.has_focus_within:
            items.highlighted = numbers.index(current.number)
        elif (running := self._first_open(todos)) is not None:
            items.highlighted = running
        self.call_after_refresh(items.scroll_to_highlight)

    def _first_open(self, todos: TodoList) -> int | None:
        places = [place for place, item in enumerate(todos.items) if item.status == "in_progress"]
        places += [place for place, item in enumerate(todos.items) if item.is_open]
        return places[0] if places else (len(todos.items) - 1 if todos.items else None)

    @property
    def selected(self) -> NumberedTodo | None:
        place = self._items.highlighted
        if self._todos is None or place is None or place >= self._items.option_count:
            return None
        number = self._items.get_option_at_index(place).id
        return next((item for item in self._todos.items if str(item.number) == number), None)

    def on_resize(self, _: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    def focus(self, scroll_visible: bool = True) -> TodoPanel:
        self._items.focus(scroll_visible)
        return self

    # --- what the person does ------------------------------------------------------------------------------------

    def act(self, action: str) -> None:
        item = self.selected
        if action == ADD:
            self._edit(TodoEdit(ADD))
        elif action == "undo":
            self.post_message(self.Changed(TodoEdit("undo")))
        elif item is None:
            return
        elif action == EDIT:
            self._edit(TodoEdit(EDIT, item.number), item.title)
        elif action in ("up", "down"):
            self._move(item, -1 if action == "up" else 1)
        elif action == "complete" and not item.is_open:
            self.post_message(self.Changed(TodoEdit("reopen", item.number)))
        else:
            self.post_message(self.Changed(TodoEdit(action, item.number)))

    def _move(self, item: NumberedTodo, step: int) -> None:
        assert self._todos is not None
        siblings = [other.number for other in self._todos.items if other.list == item.list]
        position = siblings.index(item.number) + step
        if 0 <= position < len(siblings):
            self.post_message(self.Changed(TodoEdit("move", item.number, position=position + 1)))

    def _edit(self, change: TodoEdit, text: str = "") -> None:
        self._editing = change
        self._input.value = text
        self._input.add_class("-shown")
        self._input.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        change, text = self._editing, event.value.strip()
        self._close_input()
        if change is not None and text:
            self.post_message(self.Changed(TodoEdit(change.action, change.number, text)))

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self._editing is not None:
            event.stop()
            event.prevent_default()
            self._close_input()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.act(EDIT)

    def _close_input(self) -> None:
        self._editing = None
        self._input.remove_class("-shown")
        self._items.focus()
