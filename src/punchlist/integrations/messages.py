"""What agents of others are told at other times than when they stop."""

from __future__ import annotations

from collections.abc import Sequence

from punchlist.agent.continuation import OpenItem, next_item
from punchlist.kernel.text import excerpt, quoted

_LONGEST_REQUEST = 1_000


def found(shown: str) -> str:
    """For a session that begins where a list was left."""
    return (
        f"Punchlist keeps a list for this project, and somebody has left it like this:\n\n{shown}\n\n"
        "If the user wants that to be done, go on with it. If they want something else, leave it, or write a list of "
        "your own over it with TodoWrite."
    )


def so_far(shown: str, request: str | None) -> str:
    """For one that goes on, or whose memory was compacted."""
    asked = (
        f"\n\nThe user's last request was: {excerpt(' '.join(request.split()), _LONGEST_REQUEST)}" if request else ""
    )
    return (
        f"Your list so far, as Punchlist has kept it:\n\n{shown}{asked}\n\nGo on with it, and mark each item when it "
        "is done; do not hand back before it is clear."
    )


def of_before(open: Sequence[OpenItem]) -> str:
    """For one that stops beside a list which is none of its own."""
    return (
        f"{_left_of('an earlier session', open)} If the user has asked for that, go on with it. If not, leave it, and "
        "answer the user."
    )


def aside(open: Sequence[OpenItem]) -> str:
    """For one that stops beside its list, which it has not touched since the user has said something new."""
    return (
        f"{_left_of('your list', open)} If the user's last message leaves you to it, go on with it now, and mark it "
        "when it is done. If they want something else, or want to talk first, leave the list as it is, and answer them."
    )


def _left_of(whose: str, open: Sequence[OpenItem]) -> str:
    following = next_item(open)
    assert following is not None
    items, are = ("item", "is") if len(open) == 1 else ("items", "are")
    return (
        f"{len(open)} {items} of {whose} {are} not done yet, the next is: {quoted(following.title)} "
        f"(id {following.id})."
    )


def prepared(shown: str) -> str:
    """For one whose user has planned something before they said anything."""
    return f"The user has put this on your plan already:\n\n{shown}\n\nlist_todo has the details. Work through it."


def left(shown: str) -> str:
    """For one whose user has said something new while a plan was open."""
    return (
        f"The plan of the turn before was not finished:\n\n{shown}\n\nThis is a new turn, and its plan is empty. If "
        "the user wants these to be done, plan them anew with create_todo."
    )
