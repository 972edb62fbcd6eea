"""Our server in a host's TOML settings. Pure: a text goes in, a text comes out.

    [mcp_servers.punchlist]
    command = "punchlist"
    args = ["mcp", "--for", "codex"]

The text is cut into its statements, each a heading or a key with its value, and only ours are touched. A library that
reads and writes TOML would be one more opinion on how the rest of somebody's file should look, and takes seconds for
files that are read here in milliseconds.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from punchlist.integrations.install.entry_command import NAME, EntryCommand
from punchlist.integrations.install.settings_json import STARTS_US, ServerEntry, Way, due, spelled, state, words_of
from punchlist.integrations.install.text_edits import (
    EditedText,
    InsertedText,
    TextEdit,
    UneditableFile,
    apply,
    insertions,
    line_at,
    newline,
    without_pieces,
)

_TOKEN: Final = re.compile(
    r'"""(?s:[^"\\]|\\.|"(?!""))*+"{3,5}'  # strings, the long ones first: what is in them means nothing here
    r"|'''(?s:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+"
    r"|\r?\n"
    r"|[\[\]{}=]"
    r"|[^\"'\#\n\[\]{}=\r]++"
    r"|\r"
)
_LINE: Final = re.compile(r"line (\d+)")


@dataclass(frozen=True, slots=True)
class TomlStatement:
    """From the beginning of its line to the end of its last."""

    start: int
    end: int
    way: Way
    heading: bool
    value: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class SettingsToml:
    command: EntryCommand
    server: ServerEntry

    def merged(self, text: str | None) -> EditedText:
        text = text or ""
        tables = _loaded(text)
        present = self._present(tables)
        if present is None:
            return self._appended(text, tables)
        words = words_of(present)
        if not self.command.is_server(words):
            raise UneditableFile(
                f"{self._name} is there already and was not made by this command. "
                "Rename or remove it, then install again",
                self._line(text),
            )
        wanted = due(present, spelled(self.server.value, self.command.renewed(words)))
        edits = list(self._updates(text, present, wanted))
        new = apply(text, edits)
        if self._present(_loaded(new)) != {**present, **wanted}:
            raise UneditableFile(
                f"{self._name} is written in a way that cannot be brought up to date", self._line(text)
            )
        return EditedText(new, insertions(text, edits))

    def _appended(self, text: str, tables: Mapping[str, Any]) -> EditedText:
        ends = newline(text)
        before = "" if not text else ends if text.endswith("\n") else ends * 2
        lines = [f"[{self._name}]", *(f"{key} = {written(value)}" for key, value in self.server.value.items())]
        piece = before + "".join(line + ends for line in lines)
        try:
            tomllib.loads(text + piece)
        except ValueError:
            raise UneditableFile(
                f"{self.server.table} is written on one line, where nothing can be added. "
                f"Write it as tables, [{self.server.table}.NAME], then install again",
                next((line_at(text, one.start) for one in _statements(text) if one.way[0] == self.server.table), None),
            ) from None
        made = () if self.server.table in tables else ((self.server.table,),)
        return EditedText(text + piece, insertions(text, [TextEdit(len(text), len(text), piece)]), made)

    def _updates(self, text: str, present: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[TextEdit]:
        ours = list(self._ours(text))
        places = {one.way: one for one in ours if not one.heading}
        for key, value in wanted.items():
            found = places.get((self.server.table, NAME, key))
            if found is not None and present.get(key) != value:
                yield TextEdit(*found.value, written(value))
        missing = [key for key in wanted if key not in present]
        heading = next((one for one in ours if one.heading and one.way == (self.server.table, NAME)), None)
        if missing and heading:
            ends = newline(text)
            gap = "" if text[: heading.end].endswith("\n") else ends
            yield TextEdit(
                heading.end, heading.end, gap + "".join(f"{key} = {written(wanted[key])}{ends}" for key in missing)
            )

    def stripped(self, text: str, inserted: tuple[InsertedText, ...] = (), made: tuple[Way, ...] | None = None) -> str:
        del made  # A heading without tables is nobody's.
        text = self.set_back(text)
        tables = _loaded(text)
        present = self._present(tables)
        if present is None or not self.command.is_server(words_of(present)):
            return text
        left = apply(text, _cuts(text, list(self._ours(text))))
        remaining = _less(tables, self.server.table)
        if _same(left, remaining, self.server.table):
            exact = without_pieces(text, inserted) if inserted else None
            return exact if exact is not None and _same(exact, remaining, self.server.table) else left
        raise UneditableFile(
            f"{self._name} is written in a way that cannot be taken out. Remove it by hand", self._line(text)
        )

    def set_back(self, text: str) -> str:
        """The text with the values that a person chose in our table as we write them."""
        present = self._present(_loaded(text))
        if present is None or not self.command.is_server(words_of(present)):
            return text
        ours = {key: value for key, value in self.server.value.items() if key in present and key not in STARTS_US}
        return apply(text, self._updates(text, present, ours))

    def is_empty(self, text: str) -> bool:
        return not text.strip()

    def pieces(self, text: str) -> Iterator[tuple[str, str, list[str]]]:
        present = self._present(_loaded(text))
        words = words_of(present)
        if present is None:
            yield self._name, "missing", []
        elif not self.command.is_server(words):
            yield self._name, "of somebody else", []
        else:
            yield self._name, state(present, spelled(self.server.value, self.command.renewed(words))), words

    @property
    def _name(self) -> str:
        return f"{self.server.table}.{NAME}"

    def _present(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        table = tables.get(self.server.table, {})
        if not isinstance(table, dict):
            raise UneditableFile(f"{self.server.table} must be a table. Correct or remove it, then try again")
        present = table.get(NAME)
        if present is not None and not isinstance(present, dict):
            raise UneditableFile(f"{self._name} must be a table. Correct or remove it, then try again")
        return present

    def _ours(self, text: str) -> Iterator[TomlStatement]:
        ours = (self.server.table, NAME)
        return (one for one in _statements(text) if one.way[:2] == ours)

    def _line(self, text: str) -> int | None:
        return next((line_at(text, one.start) for one in self._ours(text)), None)


def written(value: Any) -> str:
    """A value of ours as TOML; its strings are JSON's, but for a character that JSON leaves as it is."""
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _loaded(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UneditableFile("is nested too deep to be read") from None
    except ValueError as error:
        line = _LINE.search(str(error))
        raise UneditableFile(f"is not valid TOML: {error}", int(line.group(1)) if line else None) from None


def _statements(text: str) -> Iterator[TomlStatement]:
    """The headings, and the keys with their values, each with the whole way to it. The text is known to be TOML."""
    table: Way = ()
    start = at = depth = last = 0
    equals: int | None = None
    while True:
        found = _TOKEN.match(text, at)
        token = found.group() if found else ""
        at += len(token)
        if not token or (token in ("\n", "\r\n") and depth == 0):
            if last > start and equals is None:
                table = _way(text[start:last])
                yield TomlStatement(start, at, table, heading=True)
            elif equals is not None:
                begins = last - len(text[equals:last].lstrip())
                yield TomlStatement(start, at, (*table, *_way(f"{text[start : equals - 1]}=0")), False, (begins, last))
            if not token:
                return
            start, equals = at, None
        elif token.strip() and token[0] != "#":
            last = at - len(token) + len(token.rstrip())
            if token == "=" and depth == 0 and equals is None:
                equals = at
            depth += (token in ("[", "{")) - (token in ("]", "}"))


def _way(statement: str) -> Way:
    """The names of a heading, or of a dotted key, whatever their quotes."""
    way, inner = list[str](), tomllib.loads(statement)
    while inner and isinstance(inner, dict):
        name, inner = next(iter(inner.items()))
        way.append(name)
    return tuple(way)


def _cuts(text: str, statements: Iterable[TomlStatement]) -> Iterator[TextEdit]:
    """Each statement, and the blank line above a heading."""
    for one in statements:
        above = next((ends for ends in ("\r\n", "\n") if one.heading and text[: one.start].endswith(ends * 2)), "")
        yield TextEdit(one.start - len(above), one.end, "")


def _same(text: str, tables: Mapping[str, Any], table: str) -> bool:
    """Whether a text says what these tables do. An empty table of servers says nothing."""
    try:
        there = tomllib.loads(text)
    except ValueError:
        return False
    return _comparable(there, table) == _comparable(tables, table)


def _comparable(tables: Mapping[str, Any], table: str) -> str:
    # As text, since a number that is none is not equal to itself.
    kept = {key: value for key, value in tables.items() if key != table or value}
    return json.dumps(kept, sort_keys=True, default=repr)


def _less(tables: Mapping[str, Any], table: str) -> dict[str, Any]:
    return {**tables, table: {key: value for key, value in tables[table].items() if key != NAME}}
