"""`?`: the keys that are valid here. Unavailable actions are shown with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, runtime_checkable

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.keys import format_key
from textual.screen import ModalScreen
from textual.widgets import Static

from punchlist.kernel.text import visible

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

_KEY_WIDTH: Final = 22


@runtime_checkable
class ExplainsActions(Protocol):
    """A screen or widget that knows why an action is not available."""

    def unavailable_reason(self, action: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class KeyLine:
    keys: tuple[str, ...]
    description: str
    enabled: bool
    reason: str = ""


def valid_keys(screen: Screen[object]) -> list[KeyLine]:
    """The keys of the focused widget, the screen and the application, in this order; one line per action."""
    found: dict[tuple[int, str], KeyLine] = {}
    for key, active in screen.active_bindings.items():
        binding = active.binding
        if not binding.description or binding.system:
            continue
        if binding.id is None and not binding.show:
            # Keys of a widget of Textual, such as those that move a cursor.
            continue
        place = (id(active.node), binding.action)
        reason = _reason(active.node, binding.action) or ("" if active.enabled else "not available now")
        line = found.get(place)
        keys = (*line.keys, key) if line else (key,)
        found[place] = KeyLine(keys, binding.description, not reason, reason)
    return list(found.values())


def _reason(node: object, action: str) -> str | None:
    return node.unavailable_reason(action) if isinstance(node, ExplainsActions) else None


class KeySheet(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1", "dismiss(None)", "Close", show=False)]
    DEFAULT_CSS = """
    KeySheet { align: center middle; }
    KeySheet > Vertical {
        width: 76; max-width: 96%; height: auto; max-height: 90%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    KeySheet VerticalScroll { height: auto; max-height: 100%; }
    """

    def __init__(self, lines: Sequence[KeyLine]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Keys valid here"
            box.border_subtitle = "Esc closes"
            with VerticalScroll():
                yield Static(Text("\n").join(self._rows()), id="key-lines")

    def _rows(self) -> Iterator[Text]:
        for line in self._lines:
            keys = " ".join(format_key(key) for key in line.keys)
            text = Text(f"{visible(keys):<{_KEY_WIDTH}} {visible(line.description)}")
            if not line.enabled:
                text.stylize("dim")
                text.append(f"  ({visible(line.reason)})", "italic")
            yield text


def show_keys(app: App[Any]) -> None:
    """Push the sheet for the current screen."""
    app.push_screen(KeySheet(valid_keys(app.screen)))
