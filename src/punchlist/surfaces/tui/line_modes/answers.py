"""Answers that a person types as words: to approvals and to questions of commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from punchlist.surfaces.tui.screen_state import PendingApproval

_YES: Final = ("y", "yes")
_NO: Final = ("n", "no", "d", "deny")
_ALWAYS: Final[Mapping[str, str]] = {"a": "tool", "always": "tool", "p": "prefix", "prefix": "prefix", "s": "server"}
QUIET_SECONDS: Final = 0.5
"""A line that arrives sooner after a question was typed before it could be read."""


@dataclass(frozen=True, slots=True)
class WordAnswer:
    answer: str
    """A key of `backend.OUTCOMES`."""
    reason: str = ""


def parse_yes_no(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None


def parse_answer(text: str, approval: PendingApproval) -> WordAnswer | None:
    """`yes`, `always`, `prefix`, `no`, `no REASON`; None if the text is no answer."""
    word, _, rest = text.strip().partition(" ")
    word = word.lower().rstrip(",.:")
    if word in _NO:
        return WordAnswer("deny", rest.strip())
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
