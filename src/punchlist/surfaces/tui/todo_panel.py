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

from punchlist.surfaces.tui.key_hints import LIST_HINTS, key_hint
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.todo_lines import list_headings, progress_line, todo_lines

if TYPE_CHECKING:
    from punchlist.views.todos import NumberedTodo, TodoList

ADD: Final = "add"
EDIT: Final = "edit"
_ANY_TIME: Final = (ADD, "undo")
"""These change the checklist also while no item is selected."""
PLAN_ENDED: Final = (
    "this item is of a turn that has ended, so its plan stays as it is; /continue has the agent finish the open items"
)


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

    @property
    def _panel(self) -> TodoPanel:
        assert isinstance(self.parent, TodoPanel)
        return self.parent

    def _act(self, action: str) -> None:
        self._panel.act(action)

    def unavailable_reason(self, action: str) -> str | None:
        return self._panel.unavailable_reason(action)

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        panel = self._panel
        panel.border_subtitle = key_hint(self.app, KeyScope.LIST, LIST_HINTS, panel.size.width) if value else ""

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


def _is_left(todos: TodoList, item: NumberedTodo) -> bool:
    """Whether the item is of the plan of a turn that has ended: no agent works on it."""
    return item.list == "plan" and todos.turn is not None and not todos.turn.open


class TodoPanel(Vertical):
    DEFAULT_CSS = """
    TodoPanel { height: auto; border: round $border-blurred; padding: 0 1; background: $background; }
    TodoPanel:focus-within { border: round $border; }
    TodoPanel > Static { dock: top; height: 1; }
    TodoPanel > OptionList {
        height: auto; max-height: 100%; border: none; padding: 0; background: $background; scrollbar-size-vertical: 1;
    }
    TodoPanel > OptionList:focus { border: none; background-tint: $foreground 0%; }
    TodoPanel > OptionList:blur > .option-list--option-highlighted { background: $background; }
    TodoPanel > Input { dock: bottom; border: none; height: 1; padding: 0; background: $panel; display: none; }
    TodoPanel > Input.-shown { display: block; }
    """

    class Changed(Message):
        def __init__(self, change: TodoEdit) -> None:
            super().__init__()
            self.change = change

    class Unavailable(Message):
        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._todos: TodoList | None = None
        self._host = ""
        """The third-party agent of the session, whose list the checklist is."""
        self._editing: TodoEdit | None = None
        self._added: str | None = None
        """The text of an item that was added here and is not shown yet."""

    def compose(self) -> ComposeResult:
        yield Static(markup=False, id="progress")
        yield _Items(markup=False)
        yield Input(placeholder="What has to be done?", select_on_focus=False, compact=True)

    @property
    def _items(self) -> _Items:
        return self.query_one(_Items)

    @property
    def _input(self) -> Input:
        return self.query_one(Input)

    def show(self, todos: TodoList, host: str = "") -> None:
        """Show these lists. The highlighted item stays highlighted."""
        if todos == self._todos and host == self._host:
            return
        self._host = host
        before, self._todos = self._todos, todos
        known = {item.id for item in before.items} if before is not None else set()
        new = [item for item in todos.items if item.id not in known and item.title == self._added]
        self._draw(new[0] if new else None)

    def _draw(self, added: NumberedTodo | None = None) -> None:
        """Draw the list; an item that was `added` here is selected."""
        todos, items = self._todos, self._items
        if todos is None or not self.is_attached:
            return
        width = max(items.scrollable_content_region.width, 20) if items.size.width else max(self.size.width - 4, 20)
        self.query_one("#progress", Static).update(progress_line(todos, width))
        current = added or self.selected
        if added is not None:
            self._added = None
        items.clear_options()
        items.add_options(
            Option(
                Content("\n").join([*heading, *todo_lines(item, width, is_idle=_is_left(todos, item))]),
                id=str(item.number),
            )
            for item, heading in zip(todos.items, list_headings(todos, self._host, width), strict=True)
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

    def unavailable_reason(self, action: str) -> str | None:
        """Why a key of the list does nothing now; None if it does something."""
        item = self.selected
        if action in _ANY_TIME:
            return None
        if item is None or self._todos is None:
            return "the list is empty; add an item first"
        if action in ("up", "down") and self._position(item, action) is None:
            return f"it is the {'first' if action == 'up' else 'last'} item of its list"
        if action == "accept":
            return None if item.status == "completed" else "only a completed item can be accepted"
        if item.list == "plan" and self._todos.turn is not None and not self._todos.turn.open:
            return PLAN_ENDED
        if item.list == "plan" and not item.is_open and action in ("complete", "start", "cancel"):
            return "an item of a plan that has ended stays ended; undo takes back your last change"
        return None

    def act(self, action: str) -> None:
        item = self.selected
        if (why := self.unavailable_reason(action)) is not None:
            self.post_message(self.Unavailable(f"{why[0].upper()}{why[1:]}."))
        elif action == ADD:
            self._edit(TodoEdit(ADD))
        elif action == "undo":
            self.post_message(self.Changed(TodoEdit("undo")))
        elif item is None:
            return
        elif action == EDIT:
            self._edit(TodoEdit(EDIT, item.number), item.title)
        elif (position := self._position(item, action)) is not None:
            self.post_message(self.Changed(TodoEdit("move", item.number, position=position)))
        elif action == "complete" and not item.is_open:
            self.post_message(self.Changed(TodoEdit("reopen", item.number)))
        else:
            self.post_message(self.Changed(TodoEdit(action, item.number)))

    def _position(self, item: NumberedTodo, action: str) -> int | None:
        """Where `up` and `down` move an item; None at the border and for other actions."""
        assert self._todos is not None
        siblings = [other.number for other in self._todos.items if other.list == item.list]
        position = siblings.index(item.number) + {"up": 0, "down": 2}.get(action, len(siblings) + 1)
        return position if 1 <= position <= len(siblings) else None

    def _edit(self, change: TodoEdit, text: str = "") -> None:
        self._editing = change
        self._input.value = text
        self._input.cursor_position = len(text)
        self._input.add_class("-shown")
        self._input.focus()
        self.call_after_refresh(self._items.scroll_to_highlight)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        change, text = self._editing, event.value.strip()
        self._close_input()
        if change is not None and text:
            self._added = text if change.action == ADD else self._added
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
