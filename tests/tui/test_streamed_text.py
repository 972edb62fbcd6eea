"""Streamed text looks the same as the stored message, while it grows and when it is long."""

from __future__ import annotations

from punchlist.surfaces.tui.live_buffer import MAX_KEPT, LiveBuffer
from punchlist.surfaces.tui.markdown_lines import markdown_lines
from punchlist.surfaces.tui.streamed_markdown import StreamedMarkdown
from punchlist.views.live_text import LiveText

TEXT = """# Plan

First **paragraph** with more words than fit on one line of forty columns.

```python
def f():

    return "# no heading"
```

- one
- two

Last paragraph.
"""


def test_every_beginning_of_a_text_looks_as_if_it_were_complete() -> None:
    for width in (20, 40):
        streamed = StreamedMarkdown()
        for end in range(1, len(TEXT) + 1):
            shown = [line.plain.rstrip() for line in streamed.lines(TEXT[:end], width)]
            assert shown == [line.plain.rstrip() for line in markdown_lines(TEXT[:end], width)], TEXT[:end]
        assert streamed.stable > 8, "finished paragraphs are not drawn again"


def test_a_long_text_shows_its_end() -> None:
    live, position = LiveBuffer(), 0
    for number in range(4_000):
        text = f"sentence {number}.\n\n"
        live.add(LiveText(number, "s", "turn", None, position, text, False, ""))
        position += len(text)
        assert len(live.text("turn")) <= MAX_KEPT
    [entry] = live.take_replies("turn")
    assert entry.text.endswith("sentence 3999.\n\n")
    assert entry.text.startswith("…")
