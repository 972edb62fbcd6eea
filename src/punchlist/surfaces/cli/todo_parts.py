"""Render what belongs to a mission todo besides its fields: sub-items, links, comments and files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from punchlist.kernel.text import visible, visible_block
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line
from punchlist.views.todo_detail import TodoParts

ICONS: Final = {
    TodoStatus.BACKLOG: "·",
    TodoStatus.PENDING: "○",
    TodoStatus.IN_PROGRESS: "▶",
    TodoStatus.COMPLETED: "✓",
    TodoStatus.CANCELLED: "✗",
}
_LINK_NAMES: Final = {
    "blocks": "blocks",
    "blockedBy": "blocked by",
    "duplicates": "duplicates",
    "duplicatedBy": "duplicated by",
    "followsFrom": "follows from",
    "followedBy": "followed by",
}


def part_lines(parts: TodoParts, cells: int) -> Iterator[str]:
    if parts.children:
        yield f"\nSub-items ({parts.progress.completed + parts.progress.cancelled}/{parts.progress.total})"
        for child in parts.children:
            yield fit_line(f"  {ICONS[child.status]} {child.id[-8:]}  {visible(child.title)}", cells)
    if parts.links:
        yield "\nLinks"
        for link in parts.links:
            text = f"{_LINK_NAMES[link.name]} {link.todo.id[-8:]}  {visible(link.todo.title)} ({link.todo.status})"
            yield fit_line(f"  {text}", cells)
    if parts.files:
        yield "\nFiles"
        for file in parts.files:
            size = f"  stored text, {len(file.content):,} characters" if file.content is not None else ""
            yield fit_line(f"  {visible(file.name)}{size}", cells)
    if parts.comments:
        yield "\nComments"
        for comment in parts.comments:
            yield f"  {visible(comment.author)}, {format_time(comment.created_at)}"
            yield from (f"    {line}".rstrip() for line in visible_block(comment.content).splitlines())
