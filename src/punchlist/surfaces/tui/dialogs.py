"""Small modal dialogs: choose, confirm, enter a line, read a text, edit JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from punchlist.surfaces.tui.arguments_text import parse_arguments
from punchlist.surfaces.tui.display_text import assemble, block, line

_BOX = """
{name} {{ align: center middle; }}
{name} > Vertical {{
    width: 76; max-width: 96%; height: auto; max-height: 90%; border: round $border; background: $surface; padding: 0 1;
}}
"""


class ChoiceDialog(ModalScreen[str | None]):
    """Choose one of several values."""

    DEFAULT_CSS = (
        _BOX.format(name="ChoiceDialog")
        + "ChoiceDialog OptionList, ChoiceDialog OptionList:focus { border: none; }"
        + "ChoiceDialog OptionList { height: auto; max-height: 20; background: $surface; }"
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close", show=False)]

    def __init__(self, title: str, choices: Sequence[tuple[str, str]], current: str = "") -> None:
        """`choices` are values with what they mean."""
        super().__init__()
        self._title = title
        self._choices = choices
        self._current = current

    def compose(self) -> ComposeResult:
        width = max((len(value) for value, _ in self._choices), default=0) + 2
        with Vertical() as box:
            box.border_title = self._title
            yield OptionList(
                *(
                    Option(assemble((f"{line(value):<{width}}", "bold"), (line(meaning), "$quiet")), id=value)
                    for value, meaning in self._choices
                ),
                markup=False,
            )

    def on_mount(self) -> None:
        values = [value for value, _ in self._choices]
        if self._current in values:
            self.query_one(OptionList).highlighted = values.index(self._current)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)


class ConfirmDialog(ModalScreen[bool]):
    """A question that only `y` answers with yes."""

    DEFAULT_CSS = _BOX.format(name="ConfirmDialog") + "ConfirmDialog VerticalScroll { height: auto; max-height: 20; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes"),
        Binding("n,escape", "dismiss(False)", "No"),
    ]

    def __init__(self, question: str, detail: str = "") -> None:
        super().__init__()
        self._question = question
        self._detail = detail

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content.styled(block(self._question), "bold"), markup=False)
            if self._detail:
                with VerticalScroll():
                    yield Static(Content(block(self._detail)), markup=False)
            keys = assemble(("y", "bold $needs-you"), " yes   ", ("n", "bold $needs-you"), " no")
            yield Static(keys, markup=False)


class LineDialog(ModalScreen[str | None]):
    """Enter one line."""

    DEFAULT_CSS = _BOX.format(name="LineDialog")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close", show=False)]

    def __init__(self, title: str, value: str = "", placeholder: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value
        self._placeholder = placeholder

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            yield Input(self._value, self._placeholder, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)


class TextDialog(ModalScreen[None]):
    """Read a text."""

    DEFAULT_CSS = _BOX.format(name="TextDialog") + "TextDialog VerticalScroll { height: auto; max-height: 30; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss(None)", "Close", show=False)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = "Esc closes"
            with VerticalScroll():
                yield Static(Content(block(self._text)), markup=False)


class ArgumentsDialog(ModalScreen[dict[str, Any] | None]):
    """Edit the arguments of a call as JSON, where no editor can be started."""

    DEFAULT_CSS = _BOX.format(name="ArgumentsDialog") + "ArgumentsDialog TextArea { height: 16; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True),
        Binding("escape", "dismiss(None)", "Close", show=False, priority=True),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = "Ctrl+S shows the call with these arguments · Esc leaves it"
            yield TextArea(self._text, tab_behavior="indent")
            yield Static(markup=False, id="problem")

    def action_save(self) -> None:
        arguments, problem = parse_arguments(self.query_one(TextArea).text)
        if arguments is None:
            self.query_one("#problem", Static).update(Content.styled(problem, "$failed"))
        else:
            self.dismiss(arguments)
