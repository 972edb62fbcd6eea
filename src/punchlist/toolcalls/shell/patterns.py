"""What a shell makes of `*.py`, `sr?/x` and `{a,b}/x`, without looking at files.

A pattern is a text in which quoted characters have a backslash. The meaning of a bracket depends on the locale, so it
stands for more than a shell takes it for: a name too many is looked at, and none is missed.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import Final

_SPECIAL: Final = re.compile(r"([*?\[\]{},~\\])")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_WILDCARD: Final = re.compile(r"(?:\\.|[^*?\[\\])*[*?\[]", re.DOTALL)
_BRACE: Final = re.compile(r"\\.|[{},]", re.DOTALL)
_EMPTY_BRACES: Final = re.compile(r"(?<!\\)\{\}.*,")
_PLAIN_BRACKET: Final = re.compile(r"\[[^\[\]\\]+\]")
_CHARACTER: Final = re.compile(r"[*?\[]")
_NAME: Final = re.compile(r"\w")
_SEQUENCE: Final = re.compile(r"([A-Za-z]|-?[0-9]{1,6})\.\.([A-Za-z]|-?[0-9]{1,6})(?:\.\.-?[0-9]{1,6})?", re.ASCII)
_MAX_ALTERNATIVES: Final = 64
_MAX_BRACES: Final = 32


def escape(text: str) -> str:
    """A text as a pattern that stands for itself."""
    return _SPECIAL.sub(r"\\\1", text)


def literal(pattern: str) -> str:
    """The text that a shell leaves when nothing matches."""
    return _ESCAPED.sub(r"\1", pattern)


def has_wildcard(pattern: str) -> bool:
    return _WILDCARD.match(pattern) is not None


@lru_cache(maxsize=256)
def alternatives(pattern: str) -> tuple[str, ...] | None:
    """The patterns without braces; None if they are too many or uncertain."""
    if pattern.count("{") > _MAX_BRACES or _EMPTY_BRACES.search(pattern):
        return None
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop()
        parts = _first_brace(text)
        if parts is None:
            return None
        if parts:
            waiting += reversed(parts)
        else:
            done.append(text)
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            return None
    return tuple(done)


def _first_brace(pattern: str) -> list[str] | None:
    """The pattern once for each alternative of its first brace; none without a brace; None if one does not end."""
    start, depth, commas = -1, 0, list[int]()
    for found in _BRACE.finditer(pattern):
        match found[0]:
            case "{":
                start = found.start() if depth == 0 else start
                depth += 1
            case "}" if depth:
                depth -= 1
                if depth == 0:
                    return _parts(pattern, start, [*commas, found.start()])
            case "," if depth == 1:
                commas.append(found.start())
    return None if depth else []


def _parts(pattern: str, start: int, ends: list[int]) -> list[str] | None:
    before, after = pattern[:start], pattern[ends[-1] + 1 :]
    begins = [start, *ends[:-1]]
    if len(ends) > 1:
        return [f"{before}{pattern[begin + 1 : end]}{after}" for begin, end in zip(begins, ends, strict=True)]
    inner = pattern[start + 1 : ends[0]]
    if ".." not in inner:
        # `{a}` stands for itself.
        return [f"{before}\\{{{inner}\\}}{after}"]
    texts = _sequence(inner)
    return None if texts is None else [f"{before}{text}{after}" for text in texts]


def _sequence(inner: str) -> list[str] | None:
    """The texts of `{1..3}` and `{a..c}`, without regard to a step; None if they are many or uncertain."""
    found = _SEQUENCE.fullmatch(inner)
    if found is None:
        return None
    first, last = found[1], found[2]
    if first.isalpha() and last.isalpha():
        low, high = sorted((ord(first), ord(last)))
        return [chr(code) for code in range(low, high + 1)] if first.islower() == last.islower() else None
    if first.isalpha() or last.isalpha():
        return None
    low, high = sorted((int(first), int(last)))
    if high - low >= _MAX_ALTERNATIVES:
        return None
    padded = any(text.lstrip("-").startswith("0") and len(text.lstrip("-")) > 1 for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [f"{number:0{width}d}" for number in range(low, high + 1)]


@lru_cache(maxsize=256)
def name_pattern(component: str) -> re.Pattern[str]:
    """The names that one part of a path may match, without the rule for names that begin with a dot."""
    found: list[str] = []
    at = 0
    while at < len(component):
        char = component[at]
        if char == "\\" and at + 1 < len(component):
            at += 1
            found.append(_CHARACTER.sub(r"[\g<0>]", component[at]))
        elif char == "[" and (plain := _PLAIN_BRACKET.match(component, at)):
            found.append("?")
            at = plain.end() - 1
        elif char == "[" and (end := component.rfind("]", at)) > at:
            found.append("*")
            at = end
        else:
            found.append("[[]" if char == "[" else char)
        at += 1
    return re.compile(translate("".join(found)))


def matches_hidden(component: str) -> bool:
    """Whether it matches names that begin with a dot."""
    return component.startswith((".", "\\."))


def has_name(component: str) -> bool:
    """Whether it has a letter or digit, unlike `*`."""
    return _NAME.search(component) is not None
