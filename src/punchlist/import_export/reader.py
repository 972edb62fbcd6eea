"""Parsing shared by all formats: values with their place in the file, names of states, links between items.

A value that cannot be stored, such as a title with control characters, is refused with its place; values
are never repaired silently. A value that has an obvious meaning but no exact equivalent is converted with
a remark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from punchlist.errors import InvalidInput
from punchlist.import_export.item import MAX_ITEMS, ExchangeItem, ParsedFile
from punchlist.kernel import text
from punchlist.kernel.clock import timestamp
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

T = TypeVar("T")

MAX_TITLE_LENGTH: Final = 500
MAX_BLOCK_LENGTH: Final = 20_000
MAX_LINE_LENGTH: Final = 200
MAX_ID_LENGTH: Final = 100
MAX_ENTRIES: Final = 1_000
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {}, 0)

STATES: Final = {
    **{status.value: status for status in TodoStatus},
    **dict.fromkeys(("todo", "to_do", "open", "new", "not_started", "ready"), TodoStatus.PENDING),
    **dict.fromkeys(("doing", "active", "started", "wip"), TodoStatus.IN_PROGRESS),
    **dict.fromkeys(("done", "complete", "closed", "finished", "resolved"), TodoStatus.COMPLETED),
    **dict.fromkeys(("canceled", "wont_do", "wontfix", "skipped"), TodoStatus.CANCELLED),
    **dict.fromkeys(("deferred", "later", "someday", "draft", "icebox"), TodoStatus.BACKLOG),
}
NEAREST_STATES: Final = {
    **dict.fromkeys(("hooked", "review", "in_review"), TodoStatus.IN_PROGRESS),
    "failed": TodoStatus.CANCELLED,
}
"""States without an exact equivalent; others become pending. The conversion is remarked."""
PRIORITIES: Final = {
    **{priority.value: priority for priority in TodoPriority},
    "urgent": TodoPriority.CRITICAL,
    "normal": TodoPriority.MEDIUM,
}


class Reader:
    """Collects the items of a file, problems with their places, and remarks."""

    def __init__(self) -> None:
        self._items: list[ExchangeItem] = []
        self._places: list[str] = []
        self._problems: list[str] = []
        self._remarks: dict[str, int] = {}

    def problem(self, where: str, what: str) -> None:
        self._problems.append(f"{where}: {what}")

    @contextmanager
    def collect_problems(self) -> Iterator[None]:
        """Add the problems of an InvalidInput raised inside to those of the file."""
        try:
            yield
        except InvalidInput as error:
            self._problems += error.problems

    def remark(self, what: str) -> None:
        """Equal remarks are reported once, with their number."""
        self._remarks[what] = self._remarks.get(what, 0) + 1

    def add(self, where: str, item: ExchangeItem) -> None:
        if len(item.details) > MAX_BLOCK_LENGTH:
            self.problem(where, f"details have {len(item.details):,} characters; the limit is {MAX_BLOCK_LENGTH:,}")
        self._items.append(item)
        self._places.append(where)

    def object(self, where: str, raw: Any, separator: str = ".") -> Record | None:
        """An object; `separator` is between its place and a key in messages."""
        if isinstance(raw, dict):
            return Record(self, where, raw, separator)
        self.problem(where, f"must be an object, got {text.json_type(raw)}")
        return None

    def line(self, where: str, raw: Any, *, max_length: int = MAX_LINE_LENGTH, required: bool = False) -> str:
        if raw is None or (raw == "" and not required):
            if required:
                self.problem(where, "is missing")
            return ""
        if problem := text.line_problem(raw, max_length=max_length, min_length=1 if required else 0):
            self.problem(where, problem)
            return ""
        return str(raw).strip()

    def title(self, where: str, raw: Any) -> str:
        return self.line(where, raw, max_length=MAX_TITLE_LENGTH, required=True)

    def block(self, where: str, raw: Any) -> str:
        if raw is None:
            return ""
        if problem := text.block_problem(raw, max_length=MAX_BLOCK_LENGTH):
            self.problem(where, problem)
            return ""
        return str(raw).strip()

    def id(self, where: str, raw: Any, *, required: bool = False) -> str:
        """An id may be a number."""
        if isinstance(raw, int) and not isinstance(raw, bool) and abs(raw) < 10**15:
            raw = str(raw)
        return self.line(where, raw, max_length=MAX_ID_LENGTH, required=required)

    def array(self, where: str, raw: Any) -> Sequence[Any]:
        if raw is None or raw == "":
            return ()
        if not isinstance(raw, list):
            self.problem(where, f"must be an array, got {text.json_type(raw)}")
            return ()
        if len(raw) > MAX_ENTRIES:
            self.problem(where, f"at most {MAX_ENTRIES} entries, got {len(raw)}")
            return ()
        return raw

    def ids(self, where: str, raw: Any) -> tuple[str, ...]:
        found = [self.id(f"{where}[{n}]", each, required=True) for n, each in enumerate(self.array(where, raw))]
        return tuple(dict.fromkeys(each for each in found if each))

    def lines(self, where: str, raw: Any) -> tuple[str, ...]:
        found = [self.line(f"{where}[{n}]", each, max_length=500) for n, each in enumerate(self.array(where, raw))]
        return tuple(dict.fromkeys(each for each in found if each))

    def status(self, where: str, raw: Any) -> TodoStatus:
        if raw is None or raw == "":
            return TodoStatus.PENDING
        if not isinstance(raw, str):
            self.problem(where, f"must be text, got {text.json_type(raw)}")
            return TodoStatus.PENDING
        name = re.sub(r"[\s_-]+", "_", raw.strip().lower())
        if name in STATES:
            return STATES[name]
        status = NEAREST_STATES.get(name, TodoStatus.PENDING)
        self.remark(f"the state {text.excerpt(raw)!r} becomes {status}")
        return status

    def priority(self, where: str, raw: Any) -> TodoPriority | None:
        if raw is None or raw == "":
            return None
        if not isinstance(raw, str):
            self.problem(where, f"must be one of {', '.join(TodoPriority)}, got {text.json_type(raw)}")
            return None
        priority = PRIORITIES.get(raw.strip().lower())
        if priority is None:
            self.remark(f"the unknown priority {text.excerpt(raw)!r} is left out")
        return priority

    def time(self, where: str, raw: Any) -> str:
        """A timestamp; a time without a zone is UTC."""
        written = self.line(where, raw, max_length=100)
        if not written:
            return ""
        try:
            time = datetime.fromisoformat(written)
            return timestamp(time if time.tzinfo else time.replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            self.remark(f"{where} is not a time and is left out")
            return ""

    def result(self) -> ParsedFile:
        """The items; raises if there are problems."""
        if not self._items and not self._problems:
            raise InvalidInput("It contains no items.")
        if len(self._items) > MAX_ITEMS:
            raise InvalidInput(f"It has {len(self._items):,} items; the limit is {MAX_ITEMS:,}.")
        self._check_ids()
        if self._problems:
            raise InvalidInput(self._problems)
        items = self._remove_dangling_links()
        remarks = [f"{what} ({count} times)" if count > 1 else what for what, count in self._remarks.items()]
        return ParsedFile(items, remarks)

    def _check_ids(self) -> None:
        seen: dict[str, str] = {}
        for item, where in zip(self._items, self._places, strict=True):
            if item.id in seen:
                self.problem(where, f"has the same id as {seen[item.id]}: {text.excerpt(item.id)!r}")
            elif item.id:
                seen[item.id] = where

    def _remove_dangling_links(self) -> list[ExchangeItem]:
        known = {item.id for item in self._items if item.id}
        linked = []
        for item, where in zip(self._items, self._places, strict=True):
            for other in item.blocked_by:
                if other == item.id:
                    self.remark(f"{where} depends on itself; the dependency is left out")
                elif other not in known:
                    self.remark(f"{where} depends on {text.excerpt(other)!r}, which is missing; it is left out")
            parent = item.parent
            if parent and parent not in known:
                self.remark(f"{where} has the parent {text.excerpt(parent)!r}, which is missing; it is left out")
                parent = ""
            blocked_by = tuple(other for other in item.blocked_by if other in known and other != item.id)
            linked.append(replace(item, blocked_by=blocked_by, parent=parent))
        return linked


class Record:
    """An object of a file. It remembers which of its keys were read."""

    def __init__(self, reader: Reader, where: str, raw: Mapping[str, Any], separator: str = ".") -> None:
        self._reader = reader
        self._prefix = where + separator
        self._raw = raw
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._raw

    def get(self, key: str, default: Any = None) -> Any:
        self._read.add(key)
        return self._raw.get(key, default)

    def read(self, parse: Callable[..., T], key: str, **options: Any) -> T:
        """The value of a key, parsed by a method of `Reader`."""
        return parse(self._reader, self._prefix + key, self.get(key), **options)

    def fields(self, *names: str, **keys: str) -> dict[str, Any]:
        """Fields of an item by name, each read from the key of the same name or from the given one."""
        keys = {**dict(zip(names, names, strict=True)), **keys}
        return {name: self.read(_FIELD_PARSERS[name], key) for name, key in keys.items()}

    def unread(self, *ignored: str) -> dict[str, Any]:
        """Fields that were not read and are not empty, without those `ignored`."""
        known = self._read.union(ignored)
        return {str(key): each for key, each in self._raw.items() if key not in known and each not in _EMPTY}


_FIELD_PARSERS: Final[dict[str, Callable[..., Any]]] = {
    **dict.fromkeys(("id", "parent"), Reader.id),
    **dict.fromkeys(("details", "acceptance", "outcome", "justification"), Reader.block),
    **dict.fromkeys(("owner", "deadline"), Reader.line),
    **dict.fromkeys(("resources", "also_affects"), Reader.lines),
    **dict.fromkeys(("created_at", "started_at", "ended_at"), Reader.time),
    "title": Reader.title,
    "active_form": partial(Reader.line, max_length=MAX_TITLE_LENGTH),
    "status": Reader.status,
    "priority": Reader.priority,
    "blocked_by": Reader.ids,
}


def parse_json(written: str, where: str = "") -> Any:
    at = f"{where}: " if where else ""
    try:
        return json.loads(written, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if where else f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"{at}is not JSON ({error.msg}, {place}).") from None
    except RecursionError:
        raise InvalidInput(f"{at}is nested too deeply.") from None
    except ValueError as error:
        raise InvalidInput(f"{at}is not JSON ({text.excerpt(str(error))}).") from None


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def join_sections(*sections: tuple[str, str]) -> str:
    """Join texts under their headings; empty texts are left out."""
    parts = [f"## {heading}\n\n{body}" if heading else body for heading, body in sections if body]
    return "\n\n".join(parts)
