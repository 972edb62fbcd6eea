"""Parts of a prompt that share a limited length, so that none of them displaces the others. Pure.

What is fixed, such as headings and instructions, is never shortened. The room that is left is shared: a part that needs
less than its share is whole, and what it leaves goes to the others, by weight. Lengths are weighted
(`kernel/token_estimate.py`): a text of other scripts than ASCII has more tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from punchlist.kernel.text import ELLIPSIS
from punchlist.kernel.token_estimate import CHARACTERS_PER_TOKEN, clipped, weighted_length

SEPARATOR: Final = "\n\n"
READ_TODOS: Final = "read them with mission_todo_list"
_MIN_ROOM: Final = 120
"""Of a part that is shortened: enough to say what is left out."""
_TIGHT: Final = 200
"""A shorter text does not say how much of it is left out."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    text: str
    shorten: Callable[[int], str] | None = None
    """The text within a length; None for a part that is never shortened."""
    weight: int = 1

    @property
    def length(self) -> int:
        return weighted_length(self.text)


def fit(parts: Sequence[PromptPart], limit: int) -> list[str]:
    """The texts of the parts, joined by `SEPARATOR` at most `limit` long if the fixed parts leave room for the rest."""
    flexible = [part for part in parts if part.shorten is not None]
    fixed = sum(part.length for part in parts if part.shorten is None) + len(SEPARATOR) * len(parts)
    rooms = iter(fair_shares([(part.length, part.weight) for part in flexible], limit - fixed))
    return [part.text if part.shorten is None else _shortened(part, next(rooms)) for part in parts]


def fit_text(parts: Sequence[PromptPart], limit: int) -> str:
    return SEPARATOR.join(filter(None, fit(parts, limit)))


def fair_shares(needs: Sequence[tuple[int, int]], total: int) -> list[int]:
    """Shares of a total for needs, as (length, weight). No need gets more than its length while another lacks room."""
    shares = [0] * len(needs)
    waiting = [index for index, (length, _) in enumerate(needs) if length > 0]
    left = max(total, 0)
    while waiting:
        unit = left / sum(needs[index][1] for index in waiting)
        content = [index for index in waiting if needs[index][0] <= unit * needs[index][1]]
        for index in content or waiting:
            shares[index] = needs[index][0] if content else int(unit * needs[index][1])
        if not content:
            break
        left -= sum(shares[index] for index in content)
        waiting = [index for index in waiting if index not in content]
    return shares


def _shortened(part: PromptPart, room: int) -> str:
    if part.length <= room or part.shorten is None:
        return part.text
    return part.shorten(max(room, _MIN_ROOM))


# --- kinds of parts ---------------------------------------------------------------------------------------


def fixed(text: str) -> PromptPart:
    return PromptPart(text)


def block(text: str, *, heading: str = "", weight: int = 1, how: str = "") -> PromptPart:
    """A text that is cut at its end. `how` says how to read the rest."""
    return PromptPart(
        f"{heading}{text}", lambda room: heading + cut(text, room - weighted_length(heading), how), weight
    )


def cut(text: str, room: int, how: str = "") -> str:
    """The beginning of a text, which says how much is left out."""
    if weighted_length(text) <= room:
        return text
    if room < _TIGHT:
        return clipped(text, max(room - CHARACTERS_PER_TOKEN, 0)).rstrip() + ELLIPSIS
    longest = f"\n{ELLIPSIS} [{len(text):,} characters left out{f': {how}' if how else ''}]"
    shown = clipped(text, max(room - weighted_length(longest), 0)).rstrip()
    return f"{shown}\n{ELLIPSIS} [{len(text) - len(shown):,} characters left out{f': {how}' if how else ''}]".lstrip()


def listing(
    heading: str, lines: Sequence[str], *, of: int | None = None, weight: int = 1, how: str = "", end: str = ""
) -> PromptPart:
    """A list whose last lines are counted when they do not fit. `of` is how many there are, if not all are `lines`;
    `end` follows them."""
    total = len(lines) if of is None else of
    last = [end] if end else []

    def within(room: int) -> str:
        shown = fitting(lines, room - weighted_length(f"{heading}{end}") - 2, total, how)
        return "\n".join([heading, *(shown or ([] if end else ["(none)"])), *last])

    whole = [*lines, *([_count(total - len(lines), how)] if total > len(lines) else [])]
    return PromptPart("\n".join([heading, *(whole or ([] if end else ["(none)"])), *last]), within, weight)


def fitting(lines: Sequence[str], room: int, total: int, how: str = "") -> list[str]:
    """As many of the lines as fit, at least the first one, cut if it must be; the rest are counted."""
    shown: list[str] = []
    left = room - (_count_length(total, how) if _needs_count(lines, room, total) else 0)
    for line in lines:
        length = weighted_length(line) + 1
        if length > left:
            break
        shown.append(line)
        left -= length
    if not shown and lines:
        shown.append(cut(lines[0], left))
    more = total - len(shown)
    return [*shown, *([_count(more, how)] if more else [])]


def _needs_count(lines: Sequence[str], room: int, total: int) -> bool:
    return total > len(lines) or sum(weighted_length(line) + 1 for line in lines) > room


def _count(number: int, how: str) -> str:
    return f"{ELLIPSIS} and {number} more{f': {how}' if how else ''}"


def _count_length(number: int, how: str) -> int:
    return weighted_length(_count(number, how)) + 1
