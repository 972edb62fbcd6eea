"""What can be completed at the cursor: a slash command, `@path` or `#item`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from punchlist.kernel.text import quoted
from punchlist.views.todos import NumberedTodo

_WORD: Final = re.compile(r"(?:^|(?<=[\s(\[{\"']))([@#])([^\s@#]*)\Z")
MAX_ITEMS: Final = 20


class CompletionKind(StrEnum):
    SLASH = "slash"
    PATH = "path"
    ITEM = "item"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class CompletionToken:
    kind: CompletionKind
    start: int
    """Where it begins in the line."""
    text: str
    """Without `@` or `#`; of a slash command the whole line."""


@dataclass(frozen=True, slots=True)
class Completion:
    insert: str
    """Replaces the token."""
    label: str
    description: str = ""
    complete: bool = False
    """Whether nothing is missing: Enter sends it at once."""


def token_at(line: str, *, first_line: bool) -> CompletionToken | None:
    """The token that ends at the cursor. `line` is the text before the cursor in its line."""
    if first_line and line.startswith("/"):
        return CompletionToken(CompletionKind.SLASH, 0, line)
    found = _WORD.search(line)
    if found is None:
        return None
    kind = CompletionKind.PATH if found.group(1) == "@" else CompletionKind.ITEM
    return CompletionToken(kind, found.start(1), found.group(2))


def path_completions(paths: Sequence[str]) -> list[Completion]:
    return [Completion(f"@{path} ", path) for path in paths]


def item_completions(items: Sequence[NumberedTodo], word: str) -> list[Completion]:
    """Items whose number begins with the word, or whose title contains it. The agent gets title and number."""
    wanted = word.lower()
    found = [item for item in items if str(item.number).startswith(wanted) or wanted in item.title.lower()]
    found.sort(key=lambda item: (not item.is_open, item.number))
    return [
        Completion(f"{quoted(item.title)} (#{item.number}) ", f"#{item.number} {item.title}", item.status)
        for item in found[:MAX_ITEMS]
    ]
