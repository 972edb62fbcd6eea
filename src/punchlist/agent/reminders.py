"""Reminding a model of its list (W7): once when there is none, and when it has not touched it for long. Pure."""

from __future__ import annotations

from collections.abc import Collection

from punchlist.agent.continuation import OpenItem, next_item
from punchlist.kernel.text import quoted


def reminder(
    *,
    asked: int,
    since_change: int,
    after: int | None,
    open: Collection[OpenItem],
    tools: Collection[str],
    listed: bool,
) -> str | None:
    """What to say before the next request, if anything.

    `asked` and `since_change` count requests: of the turn, and since a list last changed. `after` is
    None where reminders are off. Whoever calls this sees to it that no state is reminded of twice.
    """
    writer = next((tool for tool in ("create_todo", "TodoWrite") if tool in tools), None)
    if after is None or writer is None:
        return None
    if asked == 0 and not listed:
        return (
            f"There is no list yet. If this takes three steps or more, write one with {writer} before you begin; "
            "otherwise go on without. Do not speak of this reminder."
        )
    following = next_item(list(open))
    if since_change < after or following is None:
        return None
    return (
        f"The list has not changed for {since_change} steps. Mark what is done, and see whether it still says what "
        f"has to be done. Next on it is: {quoted(following.title)} (id {following.id}). Do not speak of this "
        "reminder."
    )
