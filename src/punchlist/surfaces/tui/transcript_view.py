"""The history of a conversation, drawn line by line.

Entries are not widgets. Each one is a block of lines that is wrapped when it comes into the window, so a conversation
costs as much as the part of it that is loaded: at most `MAX_BLOCKS` entries, of which only the visible lines are drawn.
The view asks for older or newer entries (`Needed`) when the person scrolls near an end.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style

from punchlist.surfaces.figures import age_of, format_seconds
from punchlist.surfaces.tui.entries import CallEntry, Entry, ListEntry, NoteEntry, ReplyEntry
from punchlist.surfaces.tui.entry_lines import entry_lines
from punchlist.surfaces.tui.entry_text import entry_text
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.streamed_markdown import StreamedMarkdown

MAX_BLOCKS: Final = 800
NEAR: Final = 20
"""Lines from an end at which more entries are asked for."""


@dataclass(slots=True)
class _Block:
    entry: Entry
    lines: list[Content] = field(default_factory=list)
    width: int = 0
    """The width that the lines were made for; 0 if they are out of date."""
    drawn: dict[int, tuple[int, Strip]] = field(default_factory=dict)
    """By row: the line of the view that it was drawn for, and how it looks."""
    stream: StreamedMarkdown | None = None
    """For text that is being streamed."""
    seconds: str = ""
    """How long the call has run, as it is shown."""

    def update(self, entry: Entry) -> None:
        self.entry = entry
        self.width = 0


class TranscriptView(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    TranscriptView {
        padding: 0 1;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        overflow-y: scroll;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Scroll", show=False),
        Binding("down,j", "scroll_down", "Scroll", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("home,g", "scroll_home", "Oldest loaded", show=False),
        Binding("end,G", "scroll_end", "Newest", show=False),
        *bindings(KeyScope.HISTORY),
    ]

    class Needed(Message):
        """The person is near an end of what is loaded."""

        def __init__(self, *, older: bool) -> None:
            super().__init__()
            self.older = older

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._blocks: list[_Block] = []
        self._places: dict[str, int] = {}
        self._tops: list[int] = []
        """The first line of each block, and the end of the last one."""
        self._expanded: set[str] = set()
        self._all_expanded = False
        self._selected: str | None = None
        self.follows = True
        """Whether the view stays at the newest entry."""
        self._is_sticking = False
        self._started: dict[str, float] = {}
        self.on_trim: Callable[..., None] = lambda **_: None
        """Called with `older` and `position` when entries at one end are dropped."""

    # --- entries ----------------------------------------------------------------------------------------------

    @property
    def entries(self) -> Sequence[Entry]:
        return [block.entry for block in self._blocks]

    @property
    def expanded(self) -> bool:
        return self._all_expanded

    def replace(self, entries: Iterable[Entry]) -> None:
        """Show these entries instead, the last one at the bottom."""
        self._blocks = [_Block(entry) for entry in entries]
        self._expanded.clear()
        self._selected = None
        self.follows = True
        self._index()
        self._layout()

    def extend(self, entries: Iterable[Entry]) -> int:
        """Add newer entries; one that is shown already is updated. Returns how many are new."""
        before, changed = len(self._blocks), False
        for entry in entries:
            place = self._places.get(entry.id)
            last = self._blocks[-1].entry if self._blocks else None
            if place is None and isinstance(entry, ListEntry) and isinstance(last, ListEntry):
                self._blocks[-1].update(last.followed_by(entry))
                self._places[entry.id] = len(self._blocks) - 1
                changed = True
            elif place is None:
                self._places[entry.id] = len(self._blocks)
                self._blocks.append(_Block(entry))
                changed = True
            elif self._blocks[place].entry != entry:
                self._blocks[place].update(entry)
                changed = True
        new = len(self._blocks) - before
        if changed:
            if self.follows and len(self._blocks) > MAX_BLOCKS:
                self._keep_newest(MAX_BLOCKS * 3 // 4)
            self._layout()
        return new

    def prepend(self, entries: Sequence[Entry]) -> None:
        """Add older entries above, without moving what is on the screen."""
        added = [_Block(entry) for entry in entries if entry.id not in self._places]
        self._blocks = [*added, *self._blocks]
        if len(self._blocks) > MAX_BLOCKS:
            self.follows = False
            del self._blocks[MAX_BLOCKS:]
            self.on_trim(older=False, position=_position(reversed(self._blocks)))
        self._index()
        height = sum(len(self._lines(block)) for block in added)
        self._layout(shift=height)

    def _keep_newest(self, count: int) -> None:
        del self._blocks[:-count]
        self.on_trim(older=True, position=_position(self._blocks))
        self._index()

    def drop(self, id: str) -> None:
        if id in self._places:
            del self._blocks[self._places[id]]
            self._index()
            self._layout()

    def entry(self, id: str) -> Entry | None:
        place = self._places.get(id)
        return None if place is None else self._blocks[place].entry

    def _index(self) -> None:
        self._places = {block.entry.id: place for place, block in enumerate(self._blocks)}

    # --- lines ------------------------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return max(self.scrollable_content_region.width, 1)

    def _lines(self, block: _Block) -> list[Content]:
        width = self._width
        if block.width != width:
            entry = block.entry
            expanded = self._all_expanded or entry.id in self._expanded
            now = self._running_seconds(entry)
            block.seconds = format_seconds(now) if now is not None else ""
            stable = 0
            if isinstance(entry, ReplyEntry) and entry.is_streaming:
                block.stream = block.stream or StreamedMarkdown()
                kept = block.stream.stable if block.stream.width == width - 2 * entry.depth else 0
                block.lines = entry_lines(entry, width, markdown=block.stream.lines)
                stable = min(kept, block.stream.stable)
            else:
                block.lines = entry_lines(entry, width, expanded=expanded, now=now)
            block.drawn = {row: drawn for row, drawn in block.drawn.items() if row < stable}
            block.width = width
        return block.lines

    def _running_seconds(self, entry: Entry) -> float | None:
        if not isinstance(entry, CallEntry) or entry.status != "executing":
            return None
        if entry.started_at:
            return age_of(entry.started_at, datetime.now(UTC))
        return time.monotonic() - self._started.setdefault(entry.id, time.monotonic())

    def _layout(self, *, shift: int = 0) -> None:
        """Compute where each block begins; scroll so that the view follows the end, or stays where it was."""
        if not self.is_attached or self.size.width == 0:
            return
        tops, top = [0], 0
        for place, block in enumerate(self._blocks):
            top += len(self._lines(block)) + self._gap_after(place)
            tops.append(top)
        self._tops = tops
        self.virtual_size = Size(self._width, top)
        if self.follows:
            self._stick()
            # The region may change with this layout, for example when the list appears.
            self.call_after_refresh(self._stick)
        elif shift:
            self.scroll_to(y=self.scroll_y + shift, animate=False, immediate=True)
        self.refresh()

    def _stick(self) -> None:
        """Scroll to the end, if the view follows it."""
        if self.follows:
            self._is_sticking = True
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True, force=True)
            self._is_sticking = False

    def _gap_after(self, place: int) -> int:
        """A blank line between a group of cards and the text that follows."""
        if not isinstance(self._blocks[place].entry, CallEntry):
            return 0
        following = self._blocks[place + 1].entry if place + 1 < len(self._blocks) else None
        return 0 if isinstance(following, CallEntry) else 1

    def line_texts(self) -> list[str]:
        """All loaded lines as text."""
        texts: list[str] = []
        for place, block in enumerate(self._blocks):
            texts += [content.plain for content in self._lines(block)] + [""] * self._gap_after(place)
        return texts

    def follow(self) -> None:
        """Go to the newest entry, and stay there."""
        self.follows = True
        self._stick()

    def tick(self) -> None:
        """Draw the running times again, where they have changed."""
        for place, block in list(enumerate(self._blocks))[-50:]:
            seconds = self._running_seconds(block.entry) if block.width else None
            if seconds is not None and format_seconds(seconds) != block.seconds:
                block.width = 0
                self._lines(block)
                # The height of a call does not depend on its time.
                top = self._tops[place] - self.scroll_offset.y
                if 0 <= top < self.size.height:
                    self.refresh(Region(0, top, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.visual_style
        at = self.scroll_offset.y + y
        place = bisect_right(self._tops, at) - 1
        if not self._tops or not 0 <= place < len(self._blocks):
            return Strip.blank(width, base.rich_style)
        block, row = self._blocks[place], at - self._tops[place]
        lines = self._lines(block)
        if row >= len(lines):
            return Strip.blank(width, base.rich_style)
        content = lines[row]
        selection = self.text_selection
        marked = row == 0 and block.entry.id == self._selected and self.has_focus
        if selection is None and not marked and row in block.drawn:
            drawn_at, strip = block.drawn[row]
            if drawn_at != at:
                # Offsets are where a selection with the mouse begins.
                strip = strip.apply_offsets(0, at)
                block.drawn[row] = at, strip
            return strip
        if selection is not None and (span := selection.get_span(at)) is not None:
            start, end = span
            style = self.screen.get_visual_style("screen--selection")
            content = content.stylize(style, start, None if end == -1 else end)
        if marked:
            mark = "underline" if self.app.no_color else "on $block-cursor-background"
            content = content.pad_right(max(width - content.cell_length, 0)).stylize_before(mark)
        strip = self._strip(content, base, width).apply_offsets(0, at)
        if selection is None and not marked:
            block.drawn[row] = at, strip
        return strip

    def _strip(self, content: Content, base: Style, width: int) -> Strip:
        parse = self.app.stylesheet.parse_style
        segments = [
            Segment(text, (base + style).rich_style) for text, style in content.render(base, end="", parse_style=parse)
        ]
        return Strip(segments, content.cell_length).adjust_cell_length(width, base.rich_style)

    # --- what the person does ----------------------------------------------------------------------------------

    def action_previous_card(self) -> None:
        self.select(-1)

    def action_next_card(self) -> None:
        self.select(1)

    def select(self, step: int) -> None:
        """Select the next or previous entry that can be opened."""
        places = [place for place, block in enumerate(self._blocks) if _can_open(block.entry)]
        if not places:
            return
        if self._selected in self._places:
            current = self._places[self._selected]
        else:
            current = len(self._blocks) if step < 0 else -1
        beyond = [place for place in places if (place - current) * step > 0]
        if not beyond:
            return
        place = beyond[0] if step > 0 else beyond[-1]
        self._selected = self._blocks[place].entry.id
        self.follows = False
        region = Region(0, self._tops[place], self._width, len(self._lines(self._blocks[place])))
        self.scroll_to_region(region, animate=False, immediate=True)
        self.refresh()

    def action_toggle_card(self) -> None:
        if self._selected is not None:
            self.toggle(self._selected)

    def action_copy_card(self) -> None:
        """Copy the chosen card as plain text."""
        entry = self.entry(self._selected) if self._selected is not None else None
        if entry is not None:
            self.app.copy_to_clipboard(entry_text(entry))
            self.app.notify("Copied the card.", markup=False)

    def toggle(self, id: str) -> None:
        """Open or close one entry."""
        place = self._places.get(id)
        if place is None:
            return
        self._expanded ^= {id}
        self._blocks[place].width = 0
        follows, self.follows = self.follows, False
        self._layout()
        self.follows = follows and self._tops[-1] <= self.scroll_offset.y + self.size.height

    def toggle_all(self) -> None:
        """Open or close all entries."""
        self._all_expanded = not self._all_expanded
        self._expanded.clear()
        for block in self._blocks:
            block.width = 0
        self._layout()

    def on_click(self, event: events.Click) -> None:
        at = self.scroll_offset.y + event.y
        place = bisect_right(self._tops, at) - 1
        if 0 <= place < len(self._blocks) and at == self._tops[place] and _can_open(self._blocks[place].entry):
            self._selected = self._blocks[place].entry.id
            self.toggle(self._selected)

    def on_resize(self, _: events.Resize) -> None:
        if self.follows and len(self._blocks) > MAX_BLOCKS // 4:
            # Wrapping again costs time for each entry; older ones are loaded again when they are scrolled to.
            self._keep_newest(MAX_BLOCKS // 4)
        self._layout()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._is_sticking:
            return
        self.follows = new_value >= self.max_scroll_y - 1
        if new_value <= NEAR < self.max_scroll_y or (new_value == 0 and new_value != old_value):
            self.post_message(self.Needed(older=True))
        elif self.follows and new_value > old_value:
            self.post_message(self.Needed(older=False))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        for block in self._blocks:
            block.drawn.clear()

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        self.refresh()

    # --- selection with the mouse ---------------------------------------------------------------------------------

    @property
    def allow_select(self) -> bool:
        return True

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(self.line_texts())), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        del selection
        for block in self._blocks:
            block.drawn.clear()
        self.refresh()


def _can_open(entry: Entry) -> bool:
    return isinstance(entry, CallEntry | NoteEntry | ListEntry)


def _position(blocks: Iterable[_Block]) -> int:
    """Of the first stored entry."""
    return next((block.entry.position for block in blocks if block.entry.position), 0)
