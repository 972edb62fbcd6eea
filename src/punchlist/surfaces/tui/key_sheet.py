"""`?`: the keys that are valid here. Unavailable actions are shown with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.keys import format_key
from textual.screen import ModalScreen
from textual.widgets import Static

from punchlist.kernel.text import visible
from punchlist.surfaces.tui.display_text import assemble, hang
from punchlist.surfaces.tui.key_table import NO_KEY

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen


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
    lines: list[KeyLine] = []
    taken: set[str] = set()
    for node, bindings in screen._binding_chain:
        own: dict[str, list[Binding]] = {}
        for key, found in bindings.key_to_bindings.items():
            for binding in found:
                # Those without an id are Textual's, such as keys that move a cursor.
                if binding.id is not None and binding.description and key not in taken and key != NO_KEY:
                    own.setdefault(binding.action, []).append(binding)
        taken |= {binding.key for found in own.values() for binding in found}
        for action, found in own.items():
            reason = _reason(node, action)
            if not reason and node.check_action(action, ()) is not True:
                reason = "not now"
            lines.append(KeyLine(tuple(each.key for each in found), found[0].description, not reason, reason))
    return lines


def _reason(node: object, action: str) -> str:
    return (node.unavailable_reason(action) or "") if isinstance(node, ExplainsActions) else ""


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
                yield Static(id="key-lines", markup=False)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        width = max(self.query_one(VerticalScroll).scrollable_content_region.width - 1, 16)
        self.query_one("#key-lines", Static).update(Content("\n").join(key_lines(self._lines, width)))


def key_lines(lines: Sequence[KeyLine], width: int) -> list[Content]:
    """Keys, and what they do; a long description continues below its beginning."""
    names = [" ".join(format_key(key) for key in line.keys) for line in lines]
    column = min(max(map(len, names), default=0), width // 3)
    shown: list[Content] = []
    for line, name in zip(lines, names, strict=True):
        style = "bold" if line.enabled else "$quiet"
        why = f"  ({visible(line.reason)})" if not line.enabled else ""
        text = assemble((visible(line.description), "" if line.enabled else "$quiet"), (why, "italic $quiet"))
        head = Content.styled(visible(name), style)
        if len(name) > column:
            shown += head.wrap(width)
            head = Content("")
        shown += hang(text, width, Content("").join([head, " " * (column + 2 - head.cell_length)]))
    return shown


def show_keys(app: App[Any]) -> None:
    """Push the sheet for the current screen."""
    app.push_screen(KeySheet(valid_keys(app.screen)))
