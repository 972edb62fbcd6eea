"""How pages write times, amounts and text. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup, escape

from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt, visible_block

UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_MINUTE: Final = 60
_MAX_VALUE: Final = 300
_SOON: Final = timedelta(days=2)
_STAMP: Final = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z")
_CODE: Final = re.compile(r"`([^`\n]+)`")


def ago(stamp: str | None, now: datetime) -> Markup:
    """A moment relative to now, with the exact time as a tooltip; the browser keeps it current."""
    if not stamp:
        return Markup("")
    moment = parse_timestamp(stamp)
    seconds = (now - moment).total_seconds()
    text = (
        f"in {_whole(-seconds)}"
        if seconds <= -_MINUTE
        else "just now"
        if seconds < _MINUTE
        else f"{_whole(seconds)} ago"
    )
    exact = f"{str(moment)[:19]} UTC"
    return Markup(f'<time datetime="{escape(stamp)}" title="{exact}" data-time="ago">{text}</time>')


def _whole(seconds: float) -> str:
    """Whole units that have passed: `3 d`, `2 h`, `5 min`."""
    size, unit = next((each for each in UNITS if seconds >= each[0]), (1, "s"))
    return f"{int(seconds // size)} {unit}"


def inline(text: str) -> Markup:
    """A message of ours for reading: commands in backticks as code, timestamps without their machine form."""
    readable = _STAMP.sub(r"\1 \2 UTC", text)
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible_block(readable)))))


def span(seconds: float) -> str:
    """A duration in its largest unit, with one decimal below 10: `1.5 d`, `12 h`, `5 min`, `0.4 s`."""
    size, unit = next((each for each in UNITS if seconds >= each[0]), (1, "s"))
    count = seconds / size
    text = f"{count:.1f}".removesuffix(".0") if count < 9.95 else f"{count:.0f}"
    return f"{text} {unit}"


def model_name(name: str) -> str:
    """The name of a model; of a rehearsal without its file."""
    return "rehearsal" if name.startswith("rehearsal:") else name


def day(stamp: str | None) -> str:
    return stamp[:10] if stamp else ""


def moment(stamp: str) -> Markup:
    """A date with its time: in UTC, which the browser replaces by the local time."""
    return _time("moment", stamp, f"{stamp[:10]} {stamp[11:19]} UTC")


def clock(stamp: str | None) -> Markup:
    """Hours, minutes and seconds."""
    return _time("clock", stamp, f"{stamp[11:19]} UTC") if stamp else Markup("")


def local_day(stamp: str) -> Markup:
    """The date of a moment."""
    return _time("day", stamp, stamp[:10])


def since(stamp: str, seconds: float) -> Markup:
    """A duration that goes on."""
    return _time("since", stamp, span(seconds))


def _time(form: str, stamp: str, text: str) -> Markup:
    return Markup('<time datetime="{}" data-time="{}">{}</time>').format(stamp, form, text)


def money(dollars: float) -> str:
    return "$0" if not dollars else f"${dollars:.4f}" if dollars < 0.01 else f"${dollars:,.2f}"


def amount(number: float) -> str:
    """`1.2k`, `3.4M`."""
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if abs(number) >= size:
            return f"{number / (1_000_000 if unit == 'M' else 1_000):.1f}{unit}"
    return f"{number:,.0f}"


def value(number: float | None) -> str:
    """A reading of a metric, without needless digits."""
    return "–" if number is None else f"{number:,.4g}" if abs(number) < 10_000 else f"{number:,.0f}"


def plain_number(number: float | None) -> str:
    """For a field of a form; nothing for None."""
    return "" if number is None else f"{number:.10g}" if number != int(number) else str(int(number))


def words(name: str) -> str:
    """An identifier as words: `in_progress` becomes `in progress`."""
    return name.replace("_", " ")


def counted(number: int, noun: str) -> str:
    """`1 tool call`, `2 tool calls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def sentence(text: str) -> str:
    """With an upper-case first letter; unlike `capitalize`, the others stay."""
    return f"{text[:1].upper()}{text[1:]}"


def field_value(value: Any) -> str:
    """A value of a field, as the history of a todo shows it."""
    if value in (None, "", []):
        return "none"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return excerpt(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _MAX_VALUE)


def deadline_state(deadline: str | None, overdue: bool, due: datetime | None, now: datetime) -> str:
    """`overdue`, `soon`, `later`, or nothing without a deadline."""
    if deadline is None:
        return ""
    if overdue:
        return "overdue"
    return "soon" if due is not None and due - now <= _SOON else "later"


def diff_lines(text: str) -> Markup:
    """A unified diff with a class per line."""
    return Markup("").join(_diff_spans(text))


def _diff_spans(text: str) -> Iterator[Markup]:
    for line in text.splitlines():
        kind = "add" if line[:1] == "+" else "del" if line[:1] == "-" else "at" if line[:2] == "@@" else "same"
        yield Markup('<span class="{}">{}</span>').format(kind, escape(line) or " ")


def is_diff(text: str) -> bool:
    lines = text.splitlines()
    return any(line.startswith(("--- ", "@@ ")) for line in lines[:40]) and any(line[:1] in "+-" for line in lines)
