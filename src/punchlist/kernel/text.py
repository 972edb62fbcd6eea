"""Safe text: checks on input, escaping on output.

Input that could control a terminal, forge a list line or break a database is refused, never repaired: stored text is
exactly the text that was sent, without surrounding whitespace. Output is escaped by `visible` regardless, since a
database may contain text from an older version, an import or another program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

ELLIPSIS: Final = "…"
_MAX_NAME_LENGTH: Final = 200

_LINE_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"

# Bidirectional and invisible characters can hide or reorder text. The joiners U+200C and U+200D are allowed: emoji
# and several scripts need them.
_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
_UNPRINTABLE: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_INVISIBLE}\U000e0000-\U000e007f]")
_UNPRINTABLE_BUT_BREAKS: Final = re.compile(
    f"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_INVISIBLE}\U000e0000-\U000e007f]"
)
_FORBIDDEN_IN_LINE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_FORBIDDEN_IN_BLOCK: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_FORBIDDEN_ANYWHERE: Final = re.compile("[\x00\ud800-\udfff]")
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_INNER: Final = str.maketrans("“”", "‘’")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: object) -> str:
    """`text` on one line, with control and invisible characters escaped."""
    return _UNPRINTABLE.sub(_escape, str(text))


def visible_block(text: str) -> str:
    """As `visible`, but keeps line feeds."""
    return _UNPRINTABLE_BUT_BREAKS.sub(_escape, text)


def quoted(text: object) -> str:
    """`text` on one line in quotation marks; quotation marks inside are replaced."""
    return f"“{visible(text).translate(_INNER)}”"


def without_tags(text: str) -> str:
    """`text` in which nothing looks like a tag to a model: it can neither end the block that quotes it, such as
    `<state>`, nor begin another one, such as `<system-reminder>`."""
    return _TAG.sub("‹", text)


def one_line(text: str, limit: int | None = None) -> str:
    """`text` of several lines on one: `visible`, with a blank for all white space between two words."""
    line = visible(" ".join(text.split()))
    return line if limit is None or len(line) <= limit else line[: limit - 1] + ELLIPSIS


def excerpt(text: str, limit: int = 60) -> str:
    """The beginning of `text`, escaped, for a message."""
    shown = visible(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + ELLIPSIS


def field_path(steps: Iterable[str | int]) -> str:
    """The path of a field in nested data: `items[2].title`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{excerpt(step)}" for step in steps).removeprefix(".")


def line_problem(value: object, *, max_length: int, min_length: int = 1) -> str | None:
    """Why `value` cannot be stored as one line of text; None if it can."""
    return _problem(value, min_length, max_length, _FORBIDDEN_IN_LINE)


def block_problem(value: object, *, max_length: int, min_length: int = 0) -> str | None:
    """Why `value` cannot be stored as text of several lines; None if it can."""
    return _problem(value, min_length, max_length, _FORBIDDEN_IN_BLOCK)


def raw_problem(value: object, *, max_length: int) -> str | None:
    """Why `value` cannot be stored unchanged, such as a program's output; None if it can."""
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
    """The JSON type of a value, for messages to people and models."""
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


def display_value(value: object) -> str:
    """A wrong value for an error message: short, on one line."""
    match value:
        case str():
            return repr(excerpt(value))
        case int() | float() if not isinstance(value, bool):
            return "a very large number" if abs(value) > 10**15 else str(value)
    return json_type(value)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """` Did you mean X?` with the closest known name, or nothing. Case and punctuation do not count."""
    from difflib import get_close_matches

    by_letters = {_letters(each): each for each in known}
    close = get_close_matches(_letters(str(name)[:_MAX_NAME_LENGTH]), by_letters, n=1, cutoff=0.7)
    return f" Did you mean {by_letters[close[0]]}?" if close else ""


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
