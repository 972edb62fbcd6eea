"""Reminders about the list (W7): one if there is no list, one if the list has not changed for long. Pure."""

from __future__ import annotations

from collections.abc import Collection

from punchlist.agent.continuation import OpenItem, next_item
from punchlist.kernel.text import quoted


def reminder(
    *,
    requests: int,
    since_change: int,
    after: int | None,
    open: Collection[OpenItem],
    tools: Collection[str],
    listed: bool,
) -> str | None:
    """The reminder to send before the next model request, or None.

    `requests` counts the model requests of the turn, `since_change` those since a list last changed.
    `after=None` turns reminders off. The caller makes sure that no list state gets two reminders.
    """
    writer = next((tool for tool in ("create_todo", "TodoWrite") if tool in tools), None)
    if after is None or writer is None:
        return None
    if requests == 0 and not listed:
        return (
            f"There is no todo list yet. If this request takes three or more steps, write a list with {writer} first. "
            "Otherwise continue without one. Do not mention this reminder."
        )
    following = next_item(list(open))
    if since_change < after or following is None:
        return None
    return (
        f"The todo list has not changed for {since_change} steps. Mark finished items as completed, and update the "
        f"list if it no longer matches the work. The next item is: {quoted(following.title)} (id {following.id}). "
        "Do not mention this reminder."
    )
