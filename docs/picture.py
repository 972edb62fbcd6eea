"""The picture in the README: the output of `punchlist todos --watch`."""

from __future__ import annotations

from html import escape

from punchlist.checklist.render import render_frame

LINE, MARGIN, CHARACTER = 22, 18, 9
COLOURS = {"✓": "#3fb950", "▶": "#d29922", "○": "#8b949e"}


def picture() -> str:
    items = [
        ("1 ✓", "Reproduce the bug"),
        ("2 ▶", "Fixing the parser"),
        ("3 ○", "Run the tests"),
        ("4 ○", "Write the changelog"),
    ]
    lines = ["$ punchlist todos --watch", *render_frame(items, "Progress: 1/4 (25%)", 60)]
    width = 2 * MARGIN + CHARACTER * max(map(len, lines))
    height = 2 * MARGIN + LINE * len(lines)
    texts = "\n".join(_text(line, MARGIN + LINE * number) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" '
        f'aria-label="A checklist in a terminal: one of four items completed, one in progress">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n'
        f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="15" fill="#c9d1d9">\n'
        f"{texts}\n</g>\n</svg>\n"
    )


def _text(line: str, y: int) -> str:
    """One line of text. Each character has its own position, so that the font does not matter."""
    cells = "".join(
        f'<tspan x="{MARGIN + CHARACTER * column}"{_colour(character)}>{escape(character)}</tspan>'
        for column, character in enumerate(line)
        if character != " "
    )
    return f'<text y="{y + 12}">{cells}</text>'


def _colour(character: str) -> str:
    return f' fill="{COLOURS[character]}"' if character in COLOURS else ""
