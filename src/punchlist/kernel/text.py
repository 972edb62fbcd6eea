"""Safe text: what may be stored, and how stored text is shown.

Two halves that do not trust each other. On the way in, text that could act on a terminal, forge a
list line or break a database is refused, never repaired behind the caller's back: what is stored
is exactly what was sent, less surrounding blanks. On the way out, `visible` escapes it all again,
since a store may hold what an older program, an import or a stranger put there.
"""

from __future__ import annotations

import re
from typing import Final

ELLIPSIS: Final = "…"

_LINE_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"

# Bidirectional and invisible marks can hide or reorder what a person reads. The joiners U+200C and
# U+200D stay: emoji and several scripts need them.
_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
_UNPRINTABLE: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_INVISIBLE}\U000e0000-\U000e007f]")
_UNPRINTABLE_BUT_BREAKS: Final = re.compile(
    f"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_INVISIBLE}\U000e0000-\U000e007f]"
)
_FORBIDDEN_IN_LINE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_FORBIDDEN_IN_BLOCK: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_FORBIDDEN_ANYWHERE: Final = re.compile("[\x00\ud800-\udfff]")
_INNER: Final = str.maketrans("“”", "‘’")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: object) -> str:
    """`text` on one line, with everything that acts instead of showing spelled out."""
    return _UNPRINTABLE.sub(_escape, str(text))


def visible_block(text: str) -> str:
    """As `visible`, but line feeds stay."""
    return _UNPRINTABLE_BUT_BREAKS.sub(_escape, text)


def quoted(text: object) -> str:
    """`text` in quotation marks, on one line, which it cannot leave by bringing its own."""
    return f"“{visible(text).translate(_INNER)}”"


def excerpt(text: str, limit: int = 60) -> str:
    """The beginning of `text`, visible, for an error message."""
    shown = visible(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + ELLIPSIS


def line_problem(value: object, *, max_length: int, min_length: int = 1) -> str | None:
    """Why `value` cannot be stored as one line of text, or None when it can."""
    return _problem(value, min_length, max_length, _FORBIDDEN_IN_LINE)


def block_problem(value: object, *, max_length: int, min_length: int = 0) -> str | None:
    """Why `value` cannot be stored as text of several lines, or None when it can."""
    return _problem(value, min_length, max_length, _FORBIDDEN_IN_BLOCK)


def raw_problem(value: object, *, max_length: int) -> str | None:
    """Why `value` cannot be kept as it came, such as a program's output, or None when it can."""
    return _problem(value, 0, max_length, _FORBIDDEN_ANYWHERE)


def _problem(value: object, min_length: int, max_length: int, forbidden: re.Pattern[str]) -> str | None:
    if not isinstance(value, str):
        return f"must be text, got {json_type(value)}"
    length = len(value.strip())
    if not min_length <= length <= max_length:
        return f"must be {min_length} to {max_length} characters after trimming, got {length}"
    if found := forbidden.search(value.strip()):
        return f"must not contain {_name(found.group())} (at character {found.start() + 1})"
    return None


def _name(char: str) -> str:
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        return f"half of a surrogate pair (U+{code:04X})"
    if char in _LINE_BREAKS:
        return f"a line break (U+{code:04X})"
    return f"control characters (U+{code:04X})"


def json_type(value: object) -> str:
    """The JSON name of a value's type, for messages to people and models who think in JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
    return type(value).__name__
