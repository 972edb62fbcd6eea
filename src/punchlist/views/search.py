"""Full-text search over requests, messages, and the items of all lists, in all conversations and missions.

Every word of the query must occur, at least as the beginning of a word. Excerpts are plain text with the positions of
the matches; surfaces mark them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from punchlist.errors import InvalidInput, StoreError
from punchlist.kernel.camel_json import camel_json
from punchlist.missions.changes import find_mission
from punchlist.storage.store import Store
from punchlist.views import search_repository as repository
from punchlist.views.plain_text import plain_line
from punchlist.views.search_index import catch_up, fold, words
from punchlist.views.search_repository import FoundDocument

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
MAX_WORDS: Final = 12
MAX_QUERY: Final = 500
EXCERPT_LENGTH: Final = 240
_BEFORE: Final = 60
"""Characters of an excerpt before the first match."""
_WORD: Final = re.compile(r"[^\W_]+")
_CURSOR: Final = re.compile(r"(?P<newest>[0-9]{1,15})-(?P<skipped>[0-9]{1,5})")
SearchKind = Literal["request", "message", "plan_todo", "checklist_item", "mission_todo"]
KINDS: Final[tuple[SearchKind, ...]] = get_args(SearchKind)


@dataclass(frozen=True, slots=True)
class SearchHit:
    kind: str
    id: str
    """Of the message or todo; of a checklist item, without its conversation."""
    conversation_id: str
    mission_id: str | None
    turn_id: str | None
    position: int | None
    """Of a message: `read_transcript` shows it with `before=position + 1`."""
    at: str
    excerpt: str
    """One line of plain text."""
    matches: Sequence[tuple[int, int]]
    """Start and end of each match in the excerpt."""
    title: str = ""
    """Of an item that also has a text; the excerpt is from the text."""
    title_matches: Sequence[tuple[int, int]] = ()
    is_notice: bool = False
    """Whether the program wrote the message, such as a prompt to an agent."""

    def as_json(self) -> dict[str, Any]:
        found = {"matches": [list(match) for match in self.matches]}
        return {**camel_json(self), **found, "titleMatches": [list(match) for match in self.title_matches]}


@dataclass(frozen=True, slots=True)
class SearchPage:
    hits: Sequence[SearchHit]
    """Best first."""
    cursor: str | None
    """None on the last page."""
    complete: bool
    """False while the index of an older database is being filled: a later search finds more."""

    def as_json(self) -> dict[str, Any]:
        return {"items": [hit.as_json() for hit in self.hits], "nextCursor": self.cursor, "complete": self.complete}


def read_search(
    store: Store,
    text: str,
    *,
    kind: str | None = None,
    mission: str | None = None,
    conversation_id: str | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> SearchPage:
    """Search for words. `mission` is a slug or an id."""
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"kind: must be one of {', '.join(KINDS)}")
    place = _CURSOR.fullmatch(cursor) if cursor is not None else None
    if cursor is not None and place is None:
        raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")
    limit, skipped = max(1, min(limit, MAX_LIMIT)), int(place["skipped"]) if place else 0
    complete = True
    # A database that cannot be written is searched as it was indexed last.
    with suppress(StoreError):
        complete = catch_up(store)
    wanted = list(dict.fromkeys(words(text[:MAX_QUERY])))[:MAX_WORDS]
    if not wanted:
        return SearchPage([], None, complete)
    with store.read() as tx:
        # The pages of a search do not move when documents are added.
        newest = int(place["newest"]) if place else repository.newest_document(tx) or 0
        found = repository.matches(
            tx,
            query=_query(store, wanted),
            newest=newest,
            kind=kind or "",
            mission_id=find_mission(tx, mission).id if mission is not None else "",
            conversation_id=conversation_id or "",
            most=limit + 1,
            skipped=skipped,
        )
    hits = _without_echoes([_hit(document, wanted) for document in found[:limit]])
    return SearchPage(hits, f"{newest}-{skipped + limit}" if len(found) > limit else None, complete)


def _without_echoes(hits: Sequence[SearchHit]) -> list[SearchHit]:
    """The program repeats messages in notices to other agents. One that says the same as a message here is left out."""
    written = {hit.excerpt for hit in hits if not hit.is_notice}
    return [hit for hit in hits if not hit.is_notice or hit.excerpt not in written]


def _query(store: Store, wanted: Sequence[str]) -> str:
    """The query in the syntax of the database. Words have letters and digits only, so they need no escapes."""
    if store.database.kind == "sqlite":
        return " ".join(f'"{word}"*' for word in wanted)
    return " & ".join(f"'{word}':*" for word in wanted)


def _hit(found: FoundDocument, wanted: Sequence[str]) -> SearchHit:
    title, text = "", plain_line(found.text)
    if found.kind.endswith(("_todo", "_item")):
        first, _, rest = found.text.partition("\n")
        lines = [line for each in rest.splitlines() if (line := plain_line(each))]
        title, text = (plain_line(first), " · ".join(lines)) if lines else ("", plain_line(first))
    excerpt, matches = make_excerpt(text, wanted)
    id = found.subject.rpartition(":")[2] if found.kind == "checklist_item" else found.subject
    place = found.conversation_id, found.mission_id, found.turn_id, found.position, found.at
    marks = _matches(title, wanted)
    return SearchHit(found.kind, id, *place, excerpt, matches, title, marks, bool(found.is_notice))


def make_excerpt(text: str, wanted: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The part of a text around the first match, on one line, and where the matches are in it."""
    line = " ".join(text.split())
    found = _matches(line, wanted)
    start = max(found[0][0] - _BEFORE, 0) if found else 0
    if start:
        # Begin with a whole word.
        start = line.find(" ", start, found[0][0]) + 1 or start
    end = start + EXCERPT_LENGTH
    before, after = "…" if start else "", "…" if end < len(line) else ""
    shift = len(before) - start
    inside = [(first + shift, last + shift) for first, last in found if last <= end]
    return f"{before}{line[start:end]}{after}", inside


def _matches(line: str, wanted: Sequence[str]) -> list[tuple[int, int]]:
    return [
        (word.start(), word.start() + min(len(match), len(word[0])))
        for word in _WORD.finditer(line)
        if (match := _longest_match(fold(word[0]), wanted))
    ]


def _longest_match(word: str, wanted: Sequence[str]) -> str:
    return max((each for each in wanted if word.startswith(each)), key=len, default="")
