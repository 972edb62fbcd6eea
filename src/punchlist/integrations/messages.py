"""Texts that hooks add to a host agent's context."""

from __future__ import annotations

from collections.abc import Sequence

from punchlist.agent.continuation import OpenItem, next_item
from punchlist.kernel.text import excerpt, quoted

_MAX_REQUEST_LENGTH = 1_000


def list_found(shown: str) -> str:
    """For a new session that finds open items."""
    return (
        f"Punchlist keeps a list for this project. An earlier session left it like this:\n\n{shown}\n\n"
        "If the user wants this work done, continue with it. Otherwise leave it unchanged, or replace it with your own "
        "list using TodoWrite."
    )


def list_resumed(shown: str, request: str | None) -> str:
    """For a session that was resumed or compacted."""
    last_request = (
        f"\n\nThe user's last request was: {excerpt(' '.join(request.split()), _MAX_REQUEST_LENGTH)}" if request else ""
    )
    return (
        f"Your list, as Punchlist stored it:\n\n{shown}{last_request}\n\nContinue with it and mark each item when it "
        "is done. Do not hand back before the list is clear."
    )


def earlier_list_open(items: Sequence[OpenItem]) -> str:
    """For an agent that stops while only items of an earlier session are open."""
    return (
        f"{_open_items('an earlier session', items)} If the user asked for this work, continue with it. Otherwise "
        "leave it unchanged and answer the user."
    )


def untouched_list_open(items: Sequence[OpenItem]) -> str:
    """For an agent that stops and has not changed its list since the user's last message."""
    return (
        f"{_open_items('your list', items)} If the user's last message leaves you free to continue, do it now and mark "
        "it when it is done. If the user wants something else or wants to talk first, leave the list unchanged and "
        "answer the user."
    )


def plan_prepared(shown: str) -> str:
    """For an agent whose user planned items before the prompt."""
    return f"The user has already put this on your plan:\n\n{shown}\n\nlist_todo shows the details. Work through it."


def plan_unfinished(shown: str) -> str:
    """For a prompt that arrives while a plan is open."""
    return (
        f"The plan of the previous turn was not finished:\n\n{shown}\n\nThis is a new turn with an empty plan. If the "
        "user wants these items done, plan them again with create_todo."
    )


def _open_items(source: str, items: Sequence[OpenItem]) -> str:
    following = next_item(items)
    assert following is not None
    noun, verb = ("item", "is") if len(items) == 1 else ("items", "are")
    return (
        f"{len(items)} {noun} of {source} {verb} not done yet. The next is: {quoted(following.title)} "
        f"(id {following.id})."
    )
