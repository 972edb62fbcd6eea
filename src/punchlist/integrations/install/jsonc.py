"""JSON with comments and trailing commas: positions of values, and edits.

A text is parsed into nodes with positions, and edits insert or remove there, so comments, blanks, the order of keys
and the spelling of numbers stay. New entries follow the layout around them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.integrations.install.text_edits import TextEdit, UneditableFile, line_ending, line_number
from punchlist.kernel.text import excerpt

_TRIVIA: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/)*+")
_COMMENTS_ON_LINE: Final = re.compile(r"(?:[ \t]*+(?:/\*[^\r\n]*?\*/|//[^\r\n]*+))*+")
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_SCALAR: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])|(?:true|false|null)(?!\w)"
)
_STRING_OR_TRIVIA: Final = re.compile(rf"({_STRING.pattern})|[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/")
_STRING_OR_TRAILING_COMMA: Final = re.compile(rf"({_STRING.pattern})|,(?=[}}\]])")
_BLANK: Final = " \t\r\n"
_TRIVIA_START: Final = frozenset(_BLANK + "/")
_NONE: Final[list[Any]] = []


class JsonNode:
    """A value and its position. `bracket` is `{`, `[`, or empty for a scalar."""

    __slots__ = ("bracket", "commas", "end", "keys", "nodes", "start", "starts")

    def __init__(self, start: int, bracket: str = "", end: int = -1) -> None:
        self.start = start
        self.bracket = bracket
        self.end = end
        # Large files have very many scalars: they share one list.
        self.nodes: list[JsonNode] = [] if bracket else _NONE
        self.keys: list[str] = [] if bracket else _NONE
        self.starts: list[int] = [] if bracket else _NONE
        """Where each element starts: at its key in an object, at its value in an array."""
        self.commas: list[int] = [] if bracket else _NONE
        """The comma after each element; the last one has a comma only if it is trailing."""


def parse(text: str) -> JsonNode | None:
    """The value of a text; None if there are only blanks and comments."""
    position = _skip_trivia(text, 0)
    if position == len(text):
        return None
    root, position = _parse_value(text, position)
    position = _skip_trivia(text, position)
    if position != len(text):
        raise _unexpected(text, position, "the end")
    return root


def _parse_value(text: str, position: int) -> tuple[JsonNode, int]:
    """A value and the position after it. Not recursive: the nesting has no limit."""
    root = node = _parse_start(text, position)
    parents = list[JsonNode]()
    position = node.end if node.end >= 0 else position + 1
    while node.end < 0:
        position = _skip_trivia(text, position)
        closing = "}" if node.bracket == "{" else "]"
        if text[position : position + 1] == closing:
            node.end = position = position + 1
            if not parents:
                break
            node = parents.pop()
        else:
            if len(node.commas) < len(node.nodes):
                raise _unexpected(text, position, f"a comma or {closing}")
            start = position
            if node.bracket == "{":
                position = _parse_key(text, position, node)
            node.starts.append(start)
            child = _parse_start(text, position)
            node.nodes.append(child)
            if child.end < 0:
                parents.append(node)
                node, position = child, position + 1
                continue
            position = child.end
        comma = _skip_trivia(text, position)
        if text[comma : comma + 1] == ",":
            node.commas.append(comma)
            position = comma + 1
    return root, position


def _parse_start(text: str, position: int) -> JsonNode:
    """A whole scalar, or an object or array without its content."""
    if text[position : position + 1] in ("{", "["):
        return JsonNode(position, text[position])
    found = _STRING.match(text, position) or _SCALAR.match(text, position)
    if found is None:
        raise _unexpected(text, position, "a value")
    return JsonNode(position, "", found.end())


def _parse_key(text: str, position: int, node: JsonNode) -> int:
    found = _STRING.match(text, position)
    if found is None:
        raise _unexpected(text, position, "a key in double quotes")
    string = found.group()
    node.keys.append(str(json.loads(string)) if "\\" in string else string[1:-1])
    position = _skip_trivia(text, found.end())
    if text[position : position + 1] != ":":
        raise _unexpected(text, position, "a colon")
    return _skip_trivia(text, position + 1)


def _skip_trivia(text: str, position: int) -> int:
    if text[position : position + 1] not in _TRIVIA_START:
        return position
    found = _TRIVIA.match(text, position)
    return found.end() if found else position


def _unexpected(text: str, position: int, expected: str) -> UneditableFile:
    column = position - text.rfind("\n", 0, position)
    found = f"“{excerpt(text[position : position + 20], 20)}”" if position < len(text) else "the end of the file"
    reason = f"is not valid JSON: expected {expected}, found {found} (column {column})"
    return UneditableFile(reason, line_number(text, position))


# --- reading ---------------------------------------------------------------------------------------------------------


def to_python(text: str, node: JsonNode) -> Any:
    """The value; the last one wins if an object has a key twice."""
    if node.bracket == "{":
        return dict(zip(node.keys, (to_python(text, child) for child in node.nodes), strict=True))
    if node.bracket == "[":
        return [to_python(text, child) for child in node.nodes]
    return json.loads(text[node.start : node.end])


def get(text: str, node: JsonNode, key: str) -> JsonNode | None:
    """A member of an object. Programs differ in which of two equal keys they use, so that is an error."""
    found = [child for name, child in zip(node.keys, node.nodes, strict=True) if name == key]
    if len(found) > 1:
        raise UneditableFile(f"has the key “{excerpt(key)}” twice in one object", line_number(text, found[1].start))
    return found[0] if found else None


def type_name(text: str, node: JsonNode) -> str:
    if node.bracket:
        return "an object" if node.bracket == "{" else "an array"
    return {'"': "text", "t": "a boolean", "f": "a boolean", "n": "null"}.get(text[node.start], "a number")


def minify(text: str) -> str:
    """The text without blanks, comments and trailing commas."""
    without_trivia = _STRING_OR_TRIVIA.sub(lambda found: found.group(1) or "", text)
    return _STRING_OR_TRAILING_COMMA.sub(lambda found: found.group(1) or "", without_trivia)


# --- adding ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JsonStyle:
    newline: str
    indent: str
    compact: bool
    """On one line, without blanks after colons."""
    single_line: bool


def detect_style(text: str, root: JsonNode | None) -> JsonStyle:
    newline = line_ending(text)
    if root is None or not root.nodes:
        return JsonStyle(newline, "  ", compact=False, single_line=False)
    single_line = "\n" not in text[root.start : root.end]
    compact = single_line and bool(root.keys) and text[root.nodes[0].start - 1] == ":"
    first = _own_line_indent(text, root.starts[0])
    return JsonStyle(newline, first[len(_line_indent(text, root.start)) :] if first else "  ", compact, single_line)


def _own_line_indent(text: str, position: int) -> str | None:
    """The blanks before a position if it starts its line, which is not the first."""
    line = text.rfind("\n", 0, position) + 1
    before = text[line:position]
    return before if line and not before.strip(" \t") else None


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def dump(value: Any, style: JsonStyle, indent: str | None) -> str:
    """A value in the style of the text; on one line if `indent` is None."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if style.compact else (", ", ": "))
    lines = json.dumps(value, ensure_ascii=False, indent=style.indent or "  ")
    return lines.replace("\n", style.newline + indent)


def replace_edit(text: str, node: JsonNode, value: Any, style: JsonStyle) -> TextEdit:
    indent = _line_indent(text, node.start) if "\n" in text[node.start : node.end] else None
    return TextEdit(node.start, node.end, dump(value, style, indent))


def append_edits(text: str, node: JsonNode, new: Mapping[str, Any] | Sequence[Any], style: JsonStyle) -> list[TextEdit]:
    """Edits that append elements to an object or array."""
    if node.nodes:
        indent = _own_line_indent(text, node.starts[0])
    else:
        indent = None if style.single_line else _line_indent(text, node.start) + style.indent
    if isinstance(new, Mapping):
        colon = ":" if style.compact else ": "
        elements = [f"{json.dumps(key)}{colon}{dump(value, style, indent)}" for key, value in new.items()]
    else:
        elements = [dump(value, style, indent) for value in new]
    gap = ("" if style.compact else " ") if indent is None else style.newline + indent
    if not node.nodes:
        return [_fill_empty(text, node, elements, gap, style, multiline=indent is not None)]

    def end_of_line(position: int) -> int:
        """Comments after an element on its line belong to it."""
        found = _COMMENTS_ON_LINE.match(text, position)
        return position if indent is None or found is None else found.end()

    if len(node.commas) == len(node.nodes):
        position = end_of_line(node.commas[-1] + 1)
        return [TextEdit(position, position, "".join(f"{gap}{element}," for element in elements))]
    last = node.nodes[-1].end
    position = end_of_line(last)
    joined = ",".join(f"{gap}{element}" for element in elements)
    return [TextEdit(last, last, ","), TextEdit(position, position, joined)]


def _fill_empty(
    text: str, node: JsonNode, elements: list[str], gap: str, style: JsonStyle, *, multiline: bool
) -> TextEdit:
    """Insert into an empty object or array, after any comment in it."""
    position = node.start + 1 + len(text[node.start + 1 : node.end - 1].rstrip())
    joined = ",".join(f"{gap}{element}" for element in elements)
    if not multiline:
        return TextEdit(position, position, joined.removeprefix(gap))
    closing = "" if "\n" in text[position : node.end - 1] else style.newline + _line_indent(text, node.start)
    return TextEdit(position, position, joined + closing)


# --- removing --------------------------------------------------------------------------------------------------------

REMOVED: Final = object()
"""In the place of an array's element: remove it."""


def remove_edits(text: str, node: JsonNode, indexes: Collection[int]) -> list[TextEdit]:
    """Edits that remove elements with their commas and the blanks before them."""
    removed = sorted(indexes)
    kept = [index for index in range(len(node.nodes)) if index not in set(removed)]
    if not kept and not _has_comments(text, node):
        return [TextEdit(node.start + 1, node.end - 1, "")]
    commas = [node.commas[index] for index in removed if index < len(node.commas)]
    if kept and len(commas) < len(removed):
        # The last element had no comma: the new last element must not have one either.
        commas.append(node.commas[kept[-1]])
    edits = [TextEdit(comma, comma + 1, "") for comma in commas]
    return [*edits, *(_remove_element(text, node, index) for index in removed)]


def _remove_element(text: str, node: JsonNode, index: int) -> TextEdit:
    start, end = node.starts[index], node.nodes[index].end
    before = start
    while text[before - 1] in _BLANK:
        before -= 1
    after = end
    if index < len(node.commas) and not text[end : node.commas[index]].strip(_BLANK):
        after = node.commas[index] + 1
    while text[after] in " \t":
        after += 1
    if "\n" in text[before:start] and text[after] not in "\r\n":
        # Text after the element on its line keeps the line break and the indentation.
        return TextEdit(start, end, "")
    return TextEdit(before, end, "")


def _has_comments(text: str, node: JsonNode) -> bool:
    ends = [node.start + 1, *(child.end for child in node.nodes)]
    gaps = zip(ends, [*node.starts, node.end - 1], strict=True)
    return any(text[start:end].strip(_BLANK + ",") for start, end in gaps)


# --- replacing -------------------------------------------------------------------------------------------------------


def value_edits(text: str, node: JsonNode, old: Any, new: Any, style: JsonStyle) -> list[TextEdit]:
    """Edits that replace the old value of a node by a new one; only what differs is edited.

    Keys of an object that are in neither value stay. An array's elements keep their indexes; a removed one is REMOVED.
    """
    added: Mapping[str, Any] | Sequence[Any]
    if isinstance(old, dict) and isinstance(new, dict):
        removed = [node.keys.index(key) for key in old if key not in new]
        added = {key: value for key, value in new.items() if key not in old}
        kept = [(get(text, node, key), value, new[key]) for key, value in old.items() if key in new]
    elif isinstance(old, list) and isinstance(new, list):
        removed = [index for index in range(len(old)) if index >= len(new) or new[index] is REMOVED]
        added = new[len(old) :]
        kept = [each for each in zip(node.nodes, old, new, strict=False) if each[2] is not REMOVED]
    else:
        return [replace_edit(text, node, new, style)]
    edits = list[TextEdit]()
    for child, before, after in kept:
        if child and before != after:
            edits += value_edits(text, child, before, after, style)
    edits += remove_edits(text, node, removed) if removed else ()
    edits += append_edits(text, node, added, style) if added else ()
    return edits
