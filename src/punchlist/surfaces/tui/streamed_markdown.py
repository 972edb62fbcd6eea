"""Lines of a Markdown text that grows: finished paragraphs are not parsed and wrapped again with every piece."""

from __future__ import annotations

from textual.content import Content

from punchlist.surfaces.tui.markdown_lines import markdown_lines

_FENCES = ("```", "~~~")


class StreamedMarkdown:
    def __init__(self) -> None:
        self._text = ""
        """The finished part."""
        self.width = 0
        self._lines: list[Content] = []

    @property
    def stable(self) -> int:
        """How many lines do not change while the text grows."""
        return len(self._lines)

    def lines(self, text: str, width: int) -> list[Content]:
        if width != self.width or not text.startswith(self._text):
            self._text, self.width, self._lines = "", width, []
        rest = text[len(self._text) :]
        if end := _finished(rest):
            self._text += rest[:end]
            self._lines += [*markdown_lines(rest[:end], width), Content("")]
            rest = rest[end:]
        lines = [*self._lines, *markdown_lines(rest, width)]
        while len(lines) > 1 and not lines[-1].plain.strip():
            lines.pop()
        return lines


def _finished(text: str) -> int:
    """Where the last paragraph begins; a block of code is one paragraph."""
    end = position = 0
    in_code = False
    for part in text.splitlines(keepends=True):
        if part.lstrip().startswith(_FENCES):
            in_code = not in_code
        position += len(part)
        if not part.strip() and part.endswith("\n") and not in_code:
            end = position
    return end
