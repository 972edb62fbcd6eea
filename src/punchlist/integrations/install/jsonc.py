"""Edits of JSON with comments and trailing commas: everything but the edited value stays as it is.

Comments and trailing commas are blanked out first, with as many spaces. The standard parser reads the result, and its
positions are those of the original text. New values follow the layout around them.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

from punchlist.integrations.install.entries import UneditableFile, line_ending, line_number
from punchlist.kernel.text import excerpt, json_type

_STRING: Final = r'"(?:[^"\\\r\n]|\\.)*+"'
_COMMENT: Final = re.compile(r"//[^\r\n]*+|/\*(?s:.*?)\*/")
_BEFORE_COMMENT: Final = re.compile(rf'(?:[^"/]++|{_STRING}|/(?![/*]))*+')
_TRAILING_COMMA: Final = re.compile(r",(?=[ \t\r\n]*+[}\]])")
_BEFORE_TRAILING_COMMA: Final = re.compile(rf'(?:[^",]++|{_STRING}|,(?![ \t\r\n]*+[}}\]]))*+')
_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_BLANK: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


class _Member(NamedTuple):
    key: str | int
    start: int
    """Of the key in an object, of the value in an array."""
    value: int
    end: int


class _Container(NamedTuple):
    """An object or an array in a text."""

    start: int
    members: list[_Member]
    close: int

    @property
    def content_end(self) -> int:
        return self.members[-1].end if self.members else self.start + 1


def load(text: str) -> Any:
    """The value of a text; None if there are only blanks and comments."""
    plain = _plain(text)
    if not plain.strip(_BLANK):
        return None
    try:
        return json.loads(plain)
    except json.JSONDecodeError as error:
        column = error.pos - text.rfind("\n", 0, error.pos)
        raise UneditableFile(
            f"is not valid JSON: {error.msg} (column {column})", line_number(text, error.pos)
        ) from None
    except ValueError as error:
        raise UneditableFile(f"is not valid JSON: {error}") from None
    except RecursionError:
        raise UneditableFile("is nested too deeply") from None


def check_type(text: str, data: Any, path: Path, expected: type[dict[str, Any]] | type[list[Any]]) -> None:
    """Raise if there is a value at the path, and it is neither of this type nor the only one."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    found = _find(text, path)
    if found is not None and not isinstance(data, expected):
        name = f"{'.'.join(excerpt(str(part)) for part in path)} " if path else ""
        kind = "an object" if expected is dict else "an array"
        raise UneditableFile(
            f"{name}must be {kind}, got {json_type(data)}. Correct or remove it, then try again",
            line_number(text, found),
        )


def line_of(text: str, path: Path) -> int | None:
    found = _find(text, path)
    return None if found is None else line_number(text, found)


@lru_cache(maxsize=2)
def _without_comments(text: str) -> str:
    return _blank_out(text, _BEFORE_COMMENT, _COMMENT)


@lru_cache(maxsize=2)
def _plain(text: str) -> str:
    return _blank_out(_without_comments(text), _BEFORE_TRAILING_COMMA, _TRAILING_COMMA)


def _blank_out(text: str, before: re.Pattern[str], pattern: re.Pattern[str]) -> str:
    """Replace every match by spaces. `before` matches all that precedes one, strings as a whole: files have megabytes
    of them."""
    parts, position = list[str](), 0
    while (skipped := before.match(text, position)) and (found := pattern.match(text, skipped.end())):
        parts += (skipped[0], " " * len(found[0]))
        position = found.end()
    return "".join((*parts, text[position:]))


def _skip_blanks(text: str, position: int) -> int:
    found = _BLANKS.match(text, position)
    return found.end() if found else position


@lru_cache(maxsize=8)
def _container(plain: str, start: int) -> _Container:
    """The object or array that starts at a position. The text must be valid."""
    members: list[_Member] = []
    position = _skip_blanks(plain, start + 1)
    while plain[position] not in "}]":
        key: str | int = len(members)
        value = position
        if plain[start] == "{":
            key, end = _DECODER.raw_decode(plain, position)
            value = _skip_blanks(plain, _skip_blanks(plain, end) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        members.append(_Member(key, position, value, end))
        position = _skip_blanks(plain, end)
        if plain[position] == ",":
            position = _skip_blanks(plain, position + 1)
    return _Container(start, members, position)


def _get(plain: str, container: _Container, key: str | int) -> _Member | None:
    """A member. Programs differ in which of two equal keys they use, so that is an error."""
    found = [member for member in container.members if member.key == key]
    if len(found) > 1:
        line = line_number(plain, found[1].start)
        raise UneditableFile(f"has the key “{excerpt(str(key))}” twice in one object", line)
    return found[0] if found else None


def _find(text: str, path: Path) -> int | None:
    """The position of a value."""
    plain = _plain(text)
    position = _skip_blanks(plain, 0)
    for key in path:
        found = _get(plain, _container(plain, position), key) if plain[position] in "{[" else None
        if found is None:
            return None
        position = found.value
    return position


# --- adding and replacing --------------------------------------------------------------------------------------------


def put(text: str, path: Path, value: Any) -> str:
    """Set the value at a path. Missing objects and arrays on the way are created; an index appends."""
    plain = _plain(text)
    root = container = _container(plain, _skip_blanks(plain, 0))
    for depth, key in enumerate(path):
        found = _get(plain, container, key)
        if found is None:
            for name in reversed(path[depth + 1 :]):
                value = {name: value} if isinstance(name, str) else [value]
            return _append(text, root, container, key, value)
        if depth == len(path) - 1:
            many_lines = "\n" in text[found.value : found.end]
            indent = _line_indent(text, found.value) if many_lines else None
            return text[: found.value] + _dump(text, root, value, indent) + text[found.end :]
        container = _container(plain, found.value)
    return text


def _append(text: str, root: _Container, container: _Container, key: str | int, value: Any) -> str:
    bare = _without_comments(text)
    if container.members:
        indent = _own_line_indent(text, container.members[0].start)
    else:
        indent = None if _is_single_line(text, root) else _line_indent(text, container.start) + _indent(text, root)
    compact, newline = _is_compact(text, root), line_ending(text)
    element = ("" if compact else " ") if indent is None else newline + indent
    if isinstance(key, str):
        element += json.dumps(key) + (":" if compact else ": ")
    element += _dump(text, root, value, indent)
    if not container.members:
        # After a comment in the empty object or array.
        end = container.start + 1 + len(text[container.start + 1 : container.close].rstrip(_BLANK))
        if indent is None:
            element = element.lstrip(" ")
        elif "\n" not in text[end : container.close]:
            element += newline + _line_indent(text, container.start)
        return text[:end] + element + text[end:]
    last = container.content_end
    comma = bare.find(",", last, container.close)
    position = comma + 1 if comma >= 0 else last
    line_end = bare.find("\n", position, container.close)
    if indent is not None and line_end >= 0:
        # Comments after an element on its line belong to it.
        position += len(text[position:line_end].rstrip(_BLANK))
    if comma >= 0:
        return f"{text[:position]}{element},{text[position:]}"
    return f"{text[:last]},{text[last:position]}{element}{text[position:]}"


def _is_single_line(text: str, root: _Container) -> bool:
    return bool(root.members) and "\n" not in text[root.start : root.close]


def _is_compact(text: str, root: _Container) -> bool:
    """Whether everything is on one line, without blanks after colons."""
    return _is_single_line(text, root) and text[root.members[0].value - 1] == ":"


def _indent(text: str, root: _Container) -> str:
    first = _own_line_indent(text, root.members[0].start) if root.members else None
    return (first or "")[len(_line_indent(text, root.start)) :] or "  "


def _own_line_indent(text: str, position: int) -> str | None:
    """The blanks before a position if it starts its line, which is not the first."""
    line = text.rfind("\n", 0, position) + 1
    before = text[line:position]
    return before if line and not before.strip(" \t") else None


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _dump(text: str, root: _Container, value: Any, indent: str | None) -> str:
    """A value in the style of the text; on one line if `indent` is None."""
    if indent is None:
        separators = (",", ":") if _is_compact(text, root) else (", ", ": ")
        return json.dumps(value, ensure_ascii=False, separators=separators)
    lines = json.dumps(value, ensure_ascii=False, indent=_indent(text, root))
    return lines.replace("\n", line_ending(text) + indent)


# --- removing --------------------------------------------------------------------------------------------------------


def remove(text: str, path: Path) -> str:
    """Remove a member, and the objects and arrays on the way that have nothing else, no comment either."""
    bare, plain = _without_comments(text), _plain(text)
    target = container = _container(plain, _skip_blanks(plain, 0))
    outer, index = None, 0
    for depth, key in enumerate(path):
        found = _get(plain, container, key)
        if found is None:
            return text
        if outer is None or len(container.members) > 1 or _has_comment(text, bare, outer, found):
            target, index = container, container.members.index(found)
        outer = found
        if depth < len(path) - 1:
            container = _container(plain, found.value)
    member, following = target.members[index], target.members[index + 1 : index + 2]
    around = text[target.start + 1 : member.start] + text[member.end : target.close]
    if not around.strip(_BLANK + ","):
        return text[: target.start + 1] + text[target.close :]
    comma = bare.find(",", member.end, following[0].start if following else target.close)
    if comma < 0 and index:
        comma = bare.find(",", target.members[index - 1].end, member.start)
    cuts = [(comma, comma + 1)] if comma >= 0 else []
    cuts.append((_cut_start(text, member, comma), member.end))
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _has_comment(text: str, bare: str, outer: _Member, inner: _Member) -> bool:
    """Whether the text of a member has a comment outside of a member in it."""
    return any(
        text[start:end] != bare[start:end] for start, end in ((outer.start, inner.start), (inner.end, outer.end))
    )


def _cut_start(text: str, member: _Member, comma: int) -> int:
    """Blanks before a member go with it, unless other text follows on its line."""
    blanks = len(text[: member.start].rstrip(_BLANK))
    after = comma + 1 if comma >= member.end and not text[member.end : comma].strip(_BLANK) else member.end
    rest = text[after:].lstrip(" \t")[:1]
    return member.start if "\n" in text[blanks : member.start] and rest not in "\r\n" else blanks
