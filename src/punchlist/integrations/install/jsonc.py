"""JSON as people keep it in settings, with comments and trailing commas: where things stand in it, and edits of it.

A text is never written anew. It is read into nodes that know their places, and an edit inserts or cuts there; so
comments, blanks, the order of keys and the way numbers are spelled are what they were. New entries look like their
neighbours: their line ends, their indentation, or all on one line where the text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.integrations.install.text_edits import TextEdit, UneditableFile, line_at, newline
from punchlist.kernel.text import excerpt

_TRIVIA: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/)*+")
_SAME_LINE: Final = re.compile(r"(?:[ \t]*+(?:/\*[^\r\n]*?\*/|//[^\r\n]*+))*+")
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_SCALAR: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])|(?:true|false|null)(?!\w)"
)
_WORD_OR_TRIVIA: Final = re.compile(rf"({_STRING.pattern})|[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/")
_WORD_OR_TRAILING: Final = re.compile(rf"({_STRING.pattern})|,(?=[}}\]])")
_BLANK: Final = " \t\r\n"
_BEGINS_TRIVIA: Final = frozenset(_BLANK + "/")


class JsonNode:
    """A value and its place. `opens` is `{`, `[`, or nothing for a value that holds no others."""

    __slots__ = ("begins", "commas", "end", "keys", "nodes", "opens", "start")

    def __init__(self, start: int, opens: str = "", end: int = -1) -> None:
        self.start = start
        self.opens = opens
        self.end = end
        # There can be very many nodes, and most hold no others.
        self.nodes: list[JsonNode] = [] if opens else _NOTHING
        self.keys: list[str] = [] if opens else _NOTHING
        self.begins: list[int] = [] if opens else _NOTHING
        """Where each element begins: its key in an object, its value in an array."""
        self.commas: list[int] = [] if opens else _NOTHING
        """The comma after each element; the last has one only where somebody left it."""


_NOTHING: Final[list[Any]] = []


def parse(text: str) -> JsonNode | None:
    """The one value of a text; None if there is nothing but blanks and comments."""
    at = _after_trivia(text, 0)
    if at == len(text):
        return None
    root, at = _value(text, at)
    at = _after_trivia(text, at)
    if at != len(text):
        raise _unexpected(text, at, "the end")
    return root


def _value(text: str, at: int) -> tuple[JsonNode, int]:
    """A value and the place after it. Without recursion: texts may be nested as deep as they like."""
    root = node = _begun(text, at)
    around = list[JsonNode]()
    at = node.end if node.end >= 0 else at + 1
    while node.end < 0:
        at = _after_trivia(text, at)
        closes = "}" if node.opens == "{" else "]"
        if text[at : at + 1] == closes:
            node.end = at = at + 1
            if not around:
                break
            node = around.pop()
        else:
            if len(node.commas) < len(node.nodes):
                raise _unexpected(text, at, f"a comma or {closes}")
            begins = at
            if node.opens == "{":
                at = _key(text, at, node)
            node.begins.append(begins)
            child = _begun(text, at)
            node.nodes.append(child)
            if child.end < 0:
                around.append(node)
                node, at = child, at + 1
                continue
            at = child.end
        comma = _after_trivia(text, at)
        if text[comma : comma + 1] == ",":
            node.commas.append(comma)
            at = comma + 1
    return root, at


def _begun(text: str, at: int) -> JsonNode:
    if text[at : at + 1] in ("{", "["):
        return JsonNode(at, text[at])
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise _unexpected(text, at, "a value")
    return JsonNode(at, "", found.end())


def _key(text: str, at: int, node: JsonNode) -> int:
    found = _STRING.match(text, at)
    if found is None:
        raise _unexpected(text, at, "a key in double quotes")
    node.keys.append(_loaded(found.group()))
    at = _after_trivia(text, found.end())
    if text[at : at + 1] != ":":
        raise _unexpected(text, at, "a colon")
    return _after_trivia(text, at + 1)


def _after_trivia(text: str, at: int) -> int:
    if text[at : at + 1] not in _BEGINS_TRIVIA:
        return at
    found = _TRIVIA.match(text, at)
    return found.end() if found else at


def _loaded(string: str) -> str:
    return str(json.loads(string)) if "\\" in string else string[1:-1]


def _unexpected(text: str, at: int, wanted: str) -> UneditableFile:
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    there = f"“{excerpt(text[at : at + 20], 20)}”" if at < len(text) else "the end of the file"
    return UneditableFile(f"is not valid JSON: expected {wanted}, found {there} (column {column})", line_at(text, at))


# --- reading ---------------------------------------------------------------------------------------------------------


def plain(text: str, node: JsonNode) -> Any:
    """The value as Python has it; of a key that is there twice, the last, as the programs read it."""
    if node.opens == "{":
        return dict(zip(node.keys, (plain(text, one) for one in node.nodes), strict=True))
    if node.opens == "[":
        return [plain(text, one) for one in node.nodes]
    return json.loads(text[node.start : node.end])


def member(text: str, node: JsonNode, key: str) -> JsonNode | None:
    """What an object has by a key. Twice the same key is for a person to sort out: programs differ in which counts."""
    found = [one for name, one in zip(node.keys, node.nodes, strict=True) if name == key]
    if len(found) > 1:
        raise UneditableFile(f"has the key “{excerpt(key)}” twice in one object", line_at(text, found[1].start))
    return found[0] if found else None


def kind(text: str, node: JsonNode) -> str:
    if node.opens:
        return "an object" if node.opens == "{" else "an array"
    first = text[node.start]
    words = {'"': "text", "t": "a boolean", "f": "a boolean", "n": "null"}
    return words.get(first, "a number")


def bare(text: str) -> str:
    """The text without what means nothing: blanks, comments, trailing commas."""
    without = _WORD_OR_TRIVIA.sub(lambda found: found.group(1) or "", text)
    return _WORD_OR_TRAILING.sub(lambda found: found.group(1) or "", without)


# --- adding ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How a text is laid out."""

    newline: str
    unit: str
    tight: bool
    """The whole of it is on one line, and has no blanks after colons."""
    flat: bool
    """The whole of it is on one line."""


def style(text: str, root: JsonNode | None) -> JsonStyle:
    ends = newline(text)
    if root is None or not root.nodes:
        return JsonStyle(ends, "  ", tight=False, flat=False)
    flat = "\n" not in text[root.start : root.end]
    tight = flat and bool(root.keys) and text[root.nodes[0].start - 1] == ":"
    return JsonStyle(ends, _unit(text, root), tight, flat)


def _unit(text: str, root: JsonNode) -> str:
    """One step of indentation, from the first line that is one step in."""
    own = _indentation(text, root.begins[0])
    return own[len(_margin(text, root.start)) :] if own else "  "


def _indentation(text: str, at: int) -> str | None:
    """The blanks before a place if nothing else is before it on its line."""
    line = text.rfind("\n", 0, at) + 1
    before = text[line:at]
    return before if line and not before.strip(" \t") else None


def indentation(text: str, node: JsonNode) -> str | None:
    """How far in the lines of a value are that goes over several; None if it does not."""
    return _margin(text, node.start) if "\n" in text[node.start : node.end] else None


def _margin(text: str, at: int) -> str:
    """The blanks that the line of a place begins with."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : line + len(text[line:at]) - len(text[line:at].lstrip(" \t"))]


def written(value: Any, look: JsonStyle, indentation: str | None) -> str:
    """A value in a text's style; on one line if there is no indentation."""
    if indentation is None:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if look.tight else (", ", ": "))
    lines = json.dumps(value, ensure_ascii=False, indent=look.unit or "  ")
    return lines.replace("\n", look.newline + indentation)


def added(text: str, node: JsonNode, new: Mapping[str, Any] | Sequence[Any], look: JsonStyle) -> list[TextEdit]:
    """Edits that put new elements at an object's or an array's end."""
    inside = _indentation(text, node.begins[0]) if node.nodes else None
    if not node.nodes and not look.flat:
        inside = _margin(text, node.start) + look.unit
    elements = _elements(new, look, inside)
    between = "" if look.tight else " "
    gap = between if inside is None else look.newline + inside
    if not node.nodes:
        return [_first(text, node, elements, gap, look, on_lines=inside is not None)]
    last = node.nodes[-1].end
    if len(node.commas) == len(node.nodes):
        at = _end_of_line(text, node.commas[-1] + 1, on_lines=inside is not None)
        return [TextEdit(at, at, "".join(f"{gap}{one}," for one in elements))]
    at = _end_of_line(text, last, on_lines=inside is not None)
    joined = ",".join(f"{gap}{one}" for one in elements)
    return [TextEdit(last, last, ","), TextEdit(at, at, joined)]


def _elements(new: Mapping[str, Any] | Sequence[Any], look: JsonStyle, inside: str | None) -> list[str]:
    if isinstance(new, Mapping):
        colon = ":" if look.tight else ": "
        return [f"{json.dumps(key)}{colon}{written(value, look, inside)}" for key, value in new.items()]
    return [written(value, look, inside) for value in new]


def _first(text: str, node: JsonNode, elements: list[str], gap: str, look: JsonStyle, *, on_lines: bool) -> TextEdit:
    """Into an empty object or array: after whatever comment is in it."""
    inner = text[node.start + 1 : node.end - 1]
    at = node.start + 1 + len(inner.rstrip())
    rest = text[at : node.end - 1]
    joined = ",".join(f"{gap}{one}" for one in elements)
    if on_lines:
        closing = "" if "\n" in rest else look.newline + _margin(text, node.start)
    else:
        joined, closing = joined.removeprefix(gap), ""
    return TextEdit(at, at, joined + closing)


def _end_of_line(text: str, at: int, *, on_lines: bool) -> int:
    """After the comments that stand behind something on its line: they belong to it."""
    found = _SAME_LINE.match(text, at)
    if not on_lines or found is None:
        return at
    return found.end()


# --- taking out ------------------------------------------------------------------------------------------------------


def cut(text: str, node: JsonNode, places: Collection[int]) -> list[TextEdit]:
    """Edits that take elements out of an object or an array, with their commas and the blanks before them."""
    gone = sorted(places)
    stay = [place for place in range(len(node.nodes)) if place not in set(gone)]
    if not stay and not _comments(text, node):
        return [TextEdit(node.start + 1, node.end - 1, "")]
    commas = [node.commas[place] for place in gone if place < len(node.commas)]
    if stay and len(commas) < len(gone):
        # The last element went, and had none: what is last now must not have one either.
        commas.append(node.commas[stay[-1]])
    edits = [TextEdit(comma, comma + 1, "") for comma in commas]
    return [*edits, *(_cut_one(text, node, place) for place in gone)]


def _cut_one(text: str, node: JsonNode, place: int) -> TextEdit:
    start, end = node.begins[place], node.nodes[place].end
    before = start
    while text[before - 1] in _BLANK:
        before -= 1
    if "\n" in text[before:start] and not _ends_line(text, node, place):
        # What stays on the line needs its beginning, and a comment above it its end.
        return TextEdit(start, end, "")
    return TextEdit(before, end, "")


def _ends_line(text: str, node: JsonNode, place: int) -> bool:
    """Whether nothing is behind an element on its line but its comma."""
    at = node.nodes[place].end
    if place < len(node.commas) and not text[at : node.commas[place]].strip(_BLANK):
        at = node.commas[place] + 1
    while text[at] in " \t":
        at += 1
    return text[at] in "\r\n"


def _comments(text: str, node: JsonNode) -> bool:
    return any(piece.strip(_BLANK + ",") for piece in _gaps(text, node))


def _gaps(text: str, node: JsonNode) -> Iterator[str]:
    """What is between the elements of a node."""
    at = node.start + 1
    for begins, one in zip(node.begins, node.nodes, strict=True):
        yield text[at:begins]
        at = one.end
    yield text[at : node.end - 1]
