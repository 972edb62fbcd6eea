"""`--watch`: show a view again whenever the database changes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from punchlist.surfaces.cli.context import echo, supports_ansi, to_json_text

if TYPE_CHECKING:
    from punchlist.storage.store import Store

REDRAW_SECONDS = 1.0
"""A view is drawn again after this time without a change, since the terminal may have been resized."""

T = TypeVar("T")


class View(Protocol[T]):
    """How a watched value is shown: drawn in a terminal, printed elsewhere."""

    def load(self) -> T: ...

    def lines(self, value: T, columns: int) -> Sequence[str]: ...

    def text(self, value: T) -> str: ...

    def json(self, value: T) -> Any: ...


def watch(store: Store, view: View[T], *, as_json: bool) -> None:
    """Show a view on every change, until the process is interrupted."""
    from punchlist.storage.change_watch import ChangeWatch, PollBackoff

    draw, backoff = _drawer(view, as_json=as_json), PollBackoff()
    with ChangeWatch(store) as changes:
        while True:
            with backoff:
                draw(view.load())
            changes.wait(REDRAW_SECONDS)


def _drawer(view: View[T], *, as_json: bool) -> Callable[[T], None]:
    """In a terminal, each drawing replaces the last one. Elsewhere each change is printed."""
    drawn: list[str] = []
    shown: Any = None

    def draw(value: T) -> None:
        nonlocal drawn, shown
        if not as_json and supports_ansi(sys.stdout):
            size = shutil.get_terminal_size()
            # One line stays free for the cursor: a drawing that scrolls cannot be replaced.
            lines = list(view.lines(value, size.columns))[: size.lines - 1]
            if lines != drawn:
                up = f"\x1b[{len(drawn)}F\x1b[J" if drawn else ""
                echo(up + "\n".join(lines))
                drawn = lines
            return
        text = to_json_text(view.json(value)) if as_json else view.text(value)
        if text != shown:
            echo(text)
            shown = text

    return draw
