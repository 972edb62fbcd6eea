"""Answers that a person types as words: to approvals and to questions of commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from punchlist.surfaces.tui.screen_state import PendingApproval

_YES: Final = ("y", "yes")
_NO: Final = ("n", "no", "d", "deny")
_EDIT: Final = ("e", "edit")
_ALWAYS: Final[Mapping[str, str]] = {"a": "tool", "always": "tool", "p": "prefix", "prefix": "prefix", "s": "server"}
QUIET_SECONDS: Final = 0.5
"""A line that arrives sooner after a question was typed before it could be read."""


@dataclass(frozen=True, slots=True)
class WordAnswer:
    answer: str
    """A key of `backend.OUTCOMES`."""
    reason: str = ""
    arguments: str = ""
    """JSON after `edit`; empty to be asked for it."""


def parse_yes_no(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None


def parse_answer(text: str, approval: PendingApproval) -> WordAnswer | None:
    """`yes`, `always`, `prefix`, `no`, `no REASON`, `edit`, `edit JSON`; None if the text is no answer."""
    word, _, rest = text.strip().partition(" ")
    word = word.lower().rstrip(",.:")
    if word in _NO:
        return WordAnswer("deny", rest.strip())
    if word in _EDIT and (not rest.strip() or rest.strip().startswith("{")):
        return WordAnswer("edit", arguments=rest.strip())
    if rest:
        return None
    if word in _YES:
        return WordAnswer("once")
    chosen = _ALWAYS.get(word, "")
    return WordAnswer(chosen) if chosen in approval.always else None


def answer_choices(approval: PendingApproval) -> Iterator[str]:
    """What can be typed, and what it means."""
    yield "yes: allow it once"
    for word, name in (("always", "tool"), ("prefix", "prefix"), ("s", "server")):
        if name in approval.always:
            yield f"{word}: always allow {approval.always[name]}"
    yield "no, or no and a reason: deny it"
    yield "edit: change the arguments; you are asked again before anything runs"
