"""The list of completions above the prompt. The prompt keeps the focus."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from punchlist.kernel.text import visible
from punchlist.surfaces.tui.completion import Completion


class CompletionPopup(OptionList, can_focus=False):
    DEFAULT_CSS = """
    CompletionPopup {
        height: auto; max-height: 10; display: none; background: $surface;
        border: round $primary-darken-1; padding: 0 1;
    }
    CompletionPopup.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._completions: Sequence[Completion] = ()

    @property
    def is_open(self) -> bool:
        return bool(self._completions)

    @property
    def chosen(self) -> Completion | None:
        place = self.highlighted
        return self._completions[place] if place is not None and place < len(self._completions) else None

    def show(self, completions: Sequence[Completion], title: str) -> None:
        self._completions = completions
        self.border_title = title
        width = max((len(each.label) for each in completions), default=0)
        self.set_options([Option(_line(each, min(width, 40))) for each in completions])
        self.set_class(bool(completions), "-open")
        if completions:
            self.highlighted = 0
            self.scroll_home(animate=False)

    def close(self) -> None:
        if self._completions:
            self.show((), "")

    def move(self, step: int) -> None:
        if self._completions:
            self.highlighted = ((self.highlighted or 0) + step) % len(self._completions)


def _line(completion: Completion, width: int) -> Text:
    text = Text(visible(completion.label), no_wrap=True, overflow="ellipsis")
    if completion.description:
        text.pad_right(max(width - len(completion.label), 0) + 2)
        text.append(visible(completion.description), "dim")
    return text
