"""The rows of Home as lines. Pure."""

from __future__ import annotations

from datetime import datetime

from textual.content import Content

from punchlist.surfaces.figures import age_of, format_age
from punchlist.surfaces.tui.display_text import assemble, cut, justified, line
from punchlist.surfaces.tui.screen_state import GROUPS, Group, HomeRow
from punchlist.surfaces.tui.theme import SIGNS, STYLES

NARROW = 70
_AGE_WIDTH = 7


def group_line(group: Group, count: int, width: int) -> Content:
    style = {"needs_you": "bold $needs-you", "working": "bold $working", "done": "bold $done"}[group]
    name = assemble((GROUPS[group], style if count else "bold $quiet"), (f"  {count or 'nothing'}", "$quiet"))
    return cut(name, width)


def row_lines(row: HomeRow, now: datetime, width: int) -> list[Content]:
    """`◆ 5 min  run_command: make release          approval · release-12`"""
    age = (format_age(age_of(row.at, now)) if row.at else "").ljust(_AGE_WIDTH)
    text = line(row.title, 300)
    title = Content.styled(text, "$quiet") if row.group == "done" else Content(text)
    head = assemble((f"{SIGNS[row.state]} ", STYLES[row.state]), (age, "$quiet"), title)
    details = Content.styled(" · ".join(line(part, 60) for part in row.details), "$quiet")
    if width < NARROW:
        return [cut(head, width), cut(Content("  ").join([Content(""), details]), width)]
    room = max(width // 2, 30)
    return [justified(head, cut(details, room), width)]
