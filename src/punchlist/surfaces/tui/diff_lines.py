"""Questions and results that contain a unified diff, as coloured lines."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from punchlist.surfaces.tui.display_text import block, fold

_STYLES: Final = {"+": "$added on $added-background", "-": "$removed on $removed-background", "@": "$working"}
_FILES: Final = ("--- ", "+++ ", "diff --git ", "index ")


def looks_like_diff(text: str) -> bool:
    """Whether a text has a hunk of a unified diff."""
    return any(line.startswith("@@ ") for line in text.splitlines()[:200])


def diff_lines(text: str, width: int) -> list[Content]:
    """The text line by line; added, removed and header lines have their style. Text before a diff stays plain."""
    lines: list[Content] = []
    inside = False
    for line in block(text).split("\n"):
        if line.startswith("@@ "):
            inside = True
        is_file = line.startswith(_FILES)
        style = "bold $quiet" if is_file else _STYLES.get(line[:1], "") if inside else ""
        is_changed = style.startswith(("$added", "$removed"))
        for piece in fold(Content(line), width):
            whole = piece.pad_right(max(width - piece.cell_length, 0)) if is_changed else piece
            lines.append(whole.stylize_before(style) if style else whole)
    return lines
