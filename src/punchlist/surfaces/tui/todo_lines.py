"""The items of a session's lists as lines, readable from 40 columns on (W9). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content

from punchlist.surfaces.figures import percent, progress_bar
from punchlist.surfaces.tui.display_text import assemble, cut, hang, line
from punchlist.surfaces.tui.theme import SIGNS, STYLES

if TYPE_CHECKING:
    from punchlist.views.todos import NumberedTodo, TodoList

MARK_STYLES: Final = {
    "claimed": "$needs-you",
    "evidenced": "$quiet",
    "checked": "$done",
    "accepted": "bold $done",
}
_MAX_BAR_WIDTH: Final = 24


def progress_line(todos: TodoList, width: int) -> Content:
    """`Tasks 3/7 (43%) ━━━━────`"""
    done, total = todos.progress
    if not todos.items:
        return assemble(("Tasks", "bold"), ("  none yet", "$quiet"))
    share = f"{done}/{total} ({percent(done, total)}%)"
    cells = max(min(width - len(share) - 9, _MAX_BAR_WIDTH), 0)
    filled, empty = progress_bar(done, total, cells)
    return assemble(("Tasks", "bold"), f"  {share}  ", (filled, "$done"), (empty, "$rule"))


def list_headings(todos: TodoList, host: str, width: int) -> list[list[Content]]:
    """Above each item the name of its list, if both lists have items and it is the first of its list."""
    lists = [item.list for item in todos.items]
    if len(set(lists)) < 2:
        return [[] for _ in lists]
    planner = line(todos.turn.agent_id, 40) if todos.turn is not None else "agent"
    names = {"plan": f"Plan of {planner}", "checklist": f"Checklist of {line(host, 40)}" if host else "Checklist"}
    return [
        [cut(Content.styled(names[name], "$quiet"), width)] if place == lists.index(name) else []
        for place, name in enumerate(lists)
    ]


def todo_lines(item: NumberedTodo, width: int, *, is_idle: bool = False) -> list[Content]:
    """An item: its sign, number and text, then its mark or what it waits for.

    `is_idle`: no turn is open, so an item in progress is one that was left.
    """
    state = "waiting" if is_idle and item.status == "in_progress" else item.status
    sign, style = SIGNS.get(state, "?"), STYLES.get(state, "")
    head = assemble((f"{sign} ", style), (f"{item.number} ", "$quiet"))
    # The words of cancelled and dropped items say so already, next to the sign.
    text_style = {"completed": "$quiet", "cancelled": "$quiet strike", "in_progress": "bold"}.get(item.status, "")
    text = Content.styled(line(item.label), text_style) if text_style else Content(line(item.label))
    notes: list[tuple[str, str]] = []
    if item.mark is not None:
        notes.append((f"  {item.mark}", MARK_STYLES.get(item.mark, "$quiet")))
    if item.is_open and item.verification.check is not None:
        notes.append(("  has check", "$quiet"))
    if item.claim is not None and item.claim.holder and item.is_open:
        notes.append((f"  @{line(item.claim.holder, 30)}", "$working"))
    if item.waits_for and item.is_open:
        notes.append((f"  waits for {line(', '.join(item.waits_for), 80)}", "$needs-you"))
    return hang(Content("").join([text, assemble(*notes)]) if notes else text, width, head)
