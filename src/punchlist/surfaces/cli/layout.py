"""Lines that fit the terminal, and the usage of runs as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from punchlist.checklist.render import clip, width
from punchlist.kernel.text import ELLIPSIS
from punchlist.surfaces.cli.context import plural, terminal_width

if TYPE_CHECKING:
    from punchlist.missions.usage import RunUsage

MIN_WIDTH: Final = 40


def line_width() -> int:
    """Cells of a line: the terminal's width, but at least 40."""
    return max(terminal_width(), MIN_WIDTH)


def fit_line(text: str, cells: int) -> str:
    """Text cut to a number of cells."""
    return text if width(text) <= cells else clip(text, cells - 1) + ELLIPSIS


def format_run_usage(account: RunUsage) -> str:
    return f"{plural(account.runs, 'run')}, {format_usage(account)}"


def format_usage(account: RunUsage) -> str:
    cost = f", ${account.cost:,.4f}" if account.cost else ""
    return (
        f"{account.input_tokens:,} tokens in, {account.output_tokens:,} out{cost}, {account.seconds:,.1f} s, "
        f"{plural(account.calls, 'tool call')}"
    )
