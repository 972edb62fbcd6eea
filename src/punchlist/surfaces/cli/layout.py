"""Lines that fit the terminal, and what runs have used, in one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from punchlist.checklist.text_width import clip, width
from punchlist.kernel.text import ELLIPSIS
from punchlist.surfaces.cli.context import columns
from punchlist.surfaces.cli.conversations import counted

if TYPE_CHECKING:
    from punchlist.missions.usage import RunUsage

NARROWEST: Final = 40


def terminal() -> int:
    """How many cells a line has."""
    return max(columns(), NARROWEST)


def fit(text: str, cells: int) -> str:
    """On a line of so many cells."""
    return text if width(text) <= cells else clip(text, cells - 1) + ELLIPSIS


def used(account: RunUsage) -> str:
    return f"{counted(account.runs, 'run')}, {spent(account)}"


def spent(account: RunUsage) -> str:
    cost = f", ${account.cost:,.4f}" if account.cost else ""
    return (
        f"{account.input_tokens:,} tokens in, {account.output_tokens:,} out{cost}, {account.seconds:,.1f} s, "
        f"{counted(account.calls, 'tool call')}"
    )
