"""Times, counts and costs as short text."""

from __future__ import annotations

from datetime import datetime


def format_seconds(seconds: float) -> str:
    if seconds < 0.0995:
        return f"{max(1, round(seconds * 1000))} ms" if seconds else "0 s"
    if seconds < 9.95 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_age(seconds: float) -> str:
    """A waiting time in one unit: `now`, `40 s`, `5 min`, `3 h`, `2 d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s" if seconds >= 1 else "now"


def age_of(at: str, now: datetime) -> float:
    """Seconds since a stored time."""
    from punchlist.kernel.clock import parse_timestamp

    return max(0.0, (now - parse_timestamp(at)).total_seconds())


def format_count(number: int) -> str:
    if number < 1_000:
        return str(number)
    for size, unit in ((1_000, "k"), (1_000_000, "M")):
        value = number / size
        if value < 999.5:
            return f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"
    return f"{number / 1_000_000:,.0f}M"


def format_cost(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.01 or not dollars else f"${dollars:.4f}"


def percent(done: int, total: int) -> int:
    """Rounded half up; round() goes to the even neighbour."""
    return (200 * done + total) // (2 * total) if total else 0


def progress_bar(done: int, total: int, cells: int) -> tuple[str, str]:
    """The filled and the empty part of a bar."""
    filled = round(cells * done / total) if total else 0
    return "━" * filled, "─" * (cells - filled)
