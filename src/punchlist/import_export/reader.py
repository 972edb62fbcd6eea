"""What all readers of formats share: a place for every problem, names of states, and entries that hang together.

What cannot be kept as it is, such as control characters in a title, is refused with its place; nothing
is repaired behind anybody's back. What can be read in one way only, but not kept as it was said, is a
remark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.item import MAX_ITEMS, ExchangeItem, ParsedFile
from punchlist.kernel import text
from punchlist.kernel.clock import timestamp
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

LONGEST_TITLE: Final = 500
LONGEST_BLOCK: Final = 20_000
LONGEST_NAME: Final = 200
LONGEST_ID: Final = 100
MOST_NAMES: Final = 1_000

STATES: Final = {
    **{status.value: status for status in TodoStatus},
    **dict.fromkeys(("todo", "to_do", "open", "new", "not_started", "ready"), TodoStatus.PENDING),
    **dict.fromkeys(("doing", "active", "started", "wip"), TodoStatus.IN_PROGRESS),
    **dict.fromkeys(("done", "complete", "closed", "finished", "resolved"), TodoStatus.COMPLETED),
    **dict.fromkeys(("canceled", "wont_do", "wontfix", "skipped"), TodoStatus.CANCELLED),
    **dict.fromkeys(("deferred", "later", "someday", "draft", "icebox"), TodoStatus.BACKLOG),
}
"""What states are called elsewhere; the first that means one of ours is what it becomes."""
NEARLY: Final = {
    "blocked": TodoStatus.PENDING,
    "waiting": TodoStatus.PENDING,
    "pinned": TodoStatus.PENDING,
    "hooked": TodoStatus.IN_PROGRESS,
    "review": TodoStatus.IN_PROGRESS,
    "in_review": TodoStatus.IN_PROGRESS,
    "failed": TodoStatus.CANCELLED,
}
"""States that we have not, and what comes nearest; said when it happens."""
PRIORITIES: Final = {
    **{priority.value: priority for priority in TodoPriority},
    "urgent": TodoPriority.CRITICAL,
    "normal": TodoPriority.MEDIUM,
}


class Reader:
    """Collects the entries of a file with their places, what is wrong with them, and what is to be said."""

    def __init__(self) -> None:
        self._entries: list[ExchangeItem] = []
        self._places: list[str] = []
        self._problems: list[str] = []
        self._remarks: dict[str, int] = {}

    def problem(self, where: str, what: str) -> None:
        self._problems.append(f"{where}: {what}")

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """What is refused in here is told with all the rest."""
        try:
            yield
        except InvalidInput as error:
            self._problems += error.problems

    def remark(self, what: str) -> None:
        """Said once, with how often it was the case."""
        self._remarks[what] = self._remarks.get(what, 0) + 1

    def add(self, where: str, entry: ExchangeItem) -> None:
        if len(entry.details) > LONGEST_BLOCK:
            self.problem(where, f"what is said of it has {len(entry.details):,} characters; at most {LONGEST_BLOCK:,}")
        self._entries.append(entry)
        self._places.append(where)

    def object(self, where: str, raw: Any) -> Mapping[str, Any] | None:
        if isinstance(raw, dict):
            return raw
        self.problem(where, f"must be an object, got {text.json_type(raw)}")
        return None

    def line(self, where: str, raw: Any, *, longest: int = LONGEST_NAME, required: bool = False) -> str:
        if raw is None or (raw == "" and not required):
            if required:
                self.problem(where, "is missing")
            return ""
        if problem := text.line_problem(raw, max_length=longest, min_length=1 if required else 0):
            self.problem(where, problem)
            return ""
        return str(raw).strip()

    def title(self, where: str, raw: Any) -> str:
        return self.line(where, raw, longest=LONGEST_TITLE, required=True)

    def block(self, where: str, raw: Any) -> str:
        if raw is None:
            return ""
        if problem := text.block_problem(raw, max_length=LONGEST_BLOCK):
            self.problem(where, problem)
            return ""
        return str(raw).strip()

    def id(self, where: str, raw: Any, *, required: bool = False) -> str:
        """An id; a number is one, too."""
        if isinstance(raw, int) and not isinstance(raw, bool) and abs(raw) < 10**15:
            raw = str(raw)
        return self.line(where, raw, longest=LONGEST_ID, required=required)

    def array(self, where: str, raw: Any, *, most: int = MOST_NAMES) -> Sequence[Any]:
        if raw is None or raw == "":
            return ()
        if not isinstance(raw, list):
            self.problem(where, f"must be an array, got {text.json_type(raw)}")
            return ()
        if len(raw) > most:
            self.problem(where, f"at most {most} entries, got {len(raw)}")
            return ()
        return raw

    def ids(self, where: str, raw: Any) -> tuple[str, ...]:
        found = [self.id(f"{where}[{n}]", one, required=True) for n, one in enumerate(self.array(where, raw))]
        return tuple(dict.fromkeys(one for one in found if one))

    def lines(self, where: str, raw: Any) -> tuple[str, ...]:
        """Names, each once."""
        found = [self.line(f"{where}[{n}]", one, longest=500) for n, one in enumerate(self.array(where, raw))]
        return tuple(dict.fromkeys(one for one in found if one))

    def status(self, where: str, raw: Any) -> TodoStatus:
        if raw is None or raw == "":
            return TodoStatus.PENDING
        if not isinstance(raw, str):
            self.problem(where, f"must be text, got {text.json_type(raw)}")
            return TodoStatus.PENDING
        name = re.sub(r"[\s_-]+", "_", raw.strip().lower())
        if name in STATES:
            return STATES[name]
        status = NEARLY.get(name, TodoStatus.PENDING)
        self.remark(f"the state {text.excerpt(raw)!r} is taken as {status}")
        return status

    def priority(self, where: str, raw: Any) -> TodoPriority | None:
        if raw is None or raw == "":
            return None
        if isinstance(raw, str) and raw.strip().lower() in PRIORITIES:
            return PRIORITIES[raw.strip().lower()]
        if not isinstance(raw, str):
            self.problem(where, f"must be one of {', '.join(TodoPriority)}, got {text.json_type(raw)}")
        else:
            self.remark(f"the priority {text.excerpt(raw)!r} is not known and left out")
        return None

    def time(self, where: str, raw: Any) -> str:
        """A time as we write it; one without a zone is taken as UTC."""
        written = self.line(where, raw, longest=100)
        if not written:
            return ""
        try:
            time = datetime.fromisoformat(written)
            return timestamp(time if time.tzinfo else time.replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            self.remark(f"{where} is no time and left out")
            return ""

    def done(self) -> ParsedFile:
        """The entries, when nothing is wrong with them."""
        if not self._entries and not self._problems:
            raise InvalidInput("There are no items in it.")
        if len(self._entries) > MAX_ITEMS:
            raise InvalidInput(f"It has {len(self._entries):,} items; at most {MAX_ITEMS:,} are read.")
        self._check_ids()
        if self._problems:
            raise InvalidInput(self._problems)
        entries = _rooted(self, self._linked())
        remarks = [f"{what} ({count} times)" if count > 1 else what for what, count in self._remarks.items()]
        return ParsedFile(entries, remarks)

    def _check_ids(self) -> None:
        seen: dict[str, str] = {}
        for entry, where in zip(self._entries, self._places, strict=True):
            if entry.id in seen:
                self.problem(where, f"has the id {text.excerpt(entry.id)!r} of {seen[entry.id]}")
            elif entry.id:
                seen[entry.id] = where

    def _linked(self) -> list[ExchangeItem]:
        """Entries that name only those that are there."""
        known = {entry.id for entry in self._entries if entry.id}
        linked = []
        for entry, where in zip(self._entries, self._places, strict=True):
            for other in entry.blocked_by:
                if other == entry.id:
                    self.remark(f"{where} waits for itself; that is left out")
                elif other not in known:
                    self.remark(f"{where} waits for {text.excerpt(other)!r}, which is not there; that is left out")
            parent = entry.parent
            if parent and parent not in known:
                self.remark(f"{where} is a part of {text.excerpt(parent)!r}, which is not there; that is left out")
                parent = ""
            needs = tuple(one for one in entry.blocked_by if one in known and one != entry.id)
            linked.append(replace(entry, blocked_by=needs, parent=parent))
        return linked


def _rooted(reader: Reader, entries: list[ExchangeItem]) -> list[ExchangeItem]:
    """Entries of which none is a part of itself."""
    parents = {entry.id: entry.parent for entry in entries if entry.id}
    rooted: set[str] = {""}
    for id in parents:
        way: dict[str, None] = {}
        at = id
        while at not in rooted and at not in way:
            way[at] = None
            at = parents[at]
        if at in way:
            reader.remark(f"{text.excerpt(at)!r} is a part of itself; that is left out")
            parents[at] = ""
        rooted.update(way)
    return [replace(entry, parent=parents[entry.id]) if entry.id else entry for entry in entries]


def parse_json(written: str, where: str = "") -> Any:
    """JSON, or an error that says where it is none."""
    at = f"{where}: " if where else ""
    try:
        return json.loads(written, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if where else f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"{at}is not JSON ({error.msg}, {place}).") from None
    except RecursionError:
        raise InvalidInput(f"{at}is nested too deeply to be read.") from None
    except ValueError as error:
        raise InvalidInput(f"{at}is not JSON ({text.excerpt(str(error))}).") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number in JSON")


def joined(*parts: tuple[str, str]) -> str:
    """Texts under their headings, as one; what is empty is left out. A text without a heading comes first."""
    told = [f"## {heading}\n\n{body}" if heading else body for heading, body in parts if body]
    return "\n\n".join(told)


def leftover(raw: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """What nobody here knows, unless it says nothing."""
    return {str(key): value for key, value in raw.items() if key not in known and value not in (None, "", [], {}, 0)}
